package telemetry

import (
	"runtime"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/callyard/callyard/internal/buildinfo"
)

// buildInfo is a series with the value 1 whose labels identify the build.
func buildInfo() prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "callyard_build_info", Help: "Always 1; the labels are the version of Callyard and of Go.",
		ConstLabels: prometheus.Labels{"version": buildinfo.Read().Version, "go_version": runtime.Version()},
	}, func() float64 { return 1 })
}

// JournalWrites exports the number of streams that a role cannot write to. failing is called at each
// scrape. stop removes the series. Call it once for each role.
func (m *Metrics) JournalWrites(role string, failing func() int) (stop func()) {
	g := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "callyard_journal_writes_failing", Help: "Streams of NATS to which writes of the role have failed for more than 3 seconds; 0 while all are stored.", ConstLabels: prometheus.Labels{"role": role},
	}, func() float64 { return float64(failing()) })
	m.registry.MustRegister(g)
	return func() { m.registry.Unregister(g) }
}

// AcceptedLosses exports the number of damaged files of the data folder that were accepted as lost.
func (m *Metrics) AcceptedLosses(files int) {
	g := prometheus.NewGauge(prometheus.GaugeOpts{Name: "callyard_accepted_losses", Help: "Damaged files of the data folder that were accepted as lost with --accept-loss."})
	g.Set(float64(files))
	m.registry.MustRegister(g)
}

// NATS exports the state of a role's connection. connected is called at each scrape. stop removes
// the series. Call it once for each role.
func (m *Metrics) NATS(role string, connected func() bool) (stop func()) {
	g := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "callyard_nats_connected", Help: "1 while the role is connected to NATS, else 0.", ConstLabels: prometheus.Labels{"role": role},
	}, func() float64 {
		if connected() {
			return 1
		}
		return 0
	})
	m.registry.MustRegister(g)
	return func() { m.registry.Unregister(g) }
}

// Redis exports in m whether Redis accepts confirmation tokens. up is called at each scrape. stop
// removes the series.
func Redis(m *Metrics, up func() bool) (stop func()) {
	g := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "callyard_redis_up", Help: "1 while Redis takes confirmation tokens, else 0.",
	}, func() float64 {
		if up() {
			return 1
		}
		return 0
	})
	m.registry.MustRegister(g)
	return func() { m.registry.Unregister(g) }
}
