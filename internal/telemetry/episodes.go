package telemetry

import "github.com/prometheus/client_golang/prometheus"

// Episodes counts episodes of environments. Its methods are safe for concurrent use.
type Episodes struct {
	running *prometheus.GaugeVec
	ended   *prometheus.CounterVec
}

// Episodes adds the metrics of environments, once.
func (m *Metrics) Episodes() *Episodes {
	e := &Episodes{
		running: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "callyard_episodes", Help: "Episodes of an environment that are in progress."}, []string{"environment"}),
		ended: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "callyard_episodes_ended_total",
			Help: "Episodes that ended, by environment, outcome (done, truncated, masked or closed) and, for masked ones, the reason."}, []string{"environment", "outcome", "reason"}),
	}
	m.registry.MustRegister(e.running, e.ended)
	return e
}

// EpisodeBegan counts an episode that began.
func (e *Episodes) EpisodeBegan(environment string) { e.running.WithLabelValues(environment).Inc() }

// EpisodeEnded counts an episode that ended. reason is that of a masked one, else "".
func (e *Episodes) EpisodeEnded(environment, outcome, reason string) {
	e.running.WithLabelValues(environment).Dec()
	e.ended.WithLabelValues(environment, outcome, reason).Inc()
}
