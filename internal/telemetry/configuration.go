package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/callyard/callyard/pkg/schema"
)

// configuration exports the active configuration of a process at each scrape.
type configuration struct {
	state          func() []schema.InForce
	ok, at, inform *prometheus.Desc
}

// Configuration exports the return value of state at each scrape. stop removes the series.
func (m *Metrics) Configuration(state func() []schema.InForce) (stop func()) {
	c := &configuration{
		state:  state,
		ok:     prometheus.NewDesc("callyard_reload_ok", "1 while the current file of a part of the configuration is in force, 0 while its last edit is refused or does not work, by part.", []string{"part"}, nil),
		at:     prometheus.NewDesc("callyard_reload_timestamp_seconds", "Time at which the file of a part of the configuration was last read, by part.", []string{"part"}, nil),
		inform: prometheus.NewDesc("callyard_config_in_force_info", "Always 1; the labels are a part of the configuration and its version in force.", []string{"part", "version"}, nil),
	}
	m.registry.MustRegister(c)
	return func() { m.registry.Unregister(c) }
}

// Describe implements [prometheus.Collector].
func (c *configuration) Describe(to chan<- *prometheus.Desc) { to <- c.ok; to <- c.at; to <- c.inform }

// Collect implements [prometheus.Collector].
func (c *configuration) Collect(to chan<- prometheus.Metric) {
	for _, p := range c.state() {
		ok := 1.0
		if p.Error != "" {
			ok = 0
		}
		to <- prometheus.MustNewConstMetric(c.ok, prometheus.GaugeValue, ok, p.Part)
		to <- prometheus.MustNewConstMetric(c.at, prometheus.GaugeValue, float64(p.Tried.UnixMilli())/1000, p.Part)
		to <- prometheus.MustNewConstMetric(c.inform, prometheus.GaugeValue, 1, p.Part, p.Version)
	}
}

// SetDisagreements sets the number of configuration files of which live processes use different
// versions.
func (m *Metrics) SetDisagreements(n int) { m.disagree.Set(float64(n)) }
