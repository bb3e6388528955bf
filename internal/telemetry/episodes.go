package telemetry

import "github.com/prometheus/client_golang/prometheus"

// Episodes counts episodes of environments. Its methods are safe for concurrent use.
type Episodes struct {
	running *prometheus.GaugeVec
	ended   *prometheus.CounterVec
}

// Episodes registers the metrics of environments. Call it once.
func (m *Metrics) Episodes() *Episodes {
	e := &Episodes{
		running: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "callyard_episodes", Help: "Episodes of an environment that are in progress."}, []string{"environment"}),
		ended: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "callyard_episodes_ended_total",
			Help: "Episodes that ended, by environment, outcome (done, truncated, masked or closed) and, for masked ones, the reason."}, []string{"environment", "outcome", "reason"}),
	}
	m.registry.MustRegister(e.running, e.ended)
	return e
}

// EpisodeBegan counts a started episode.
func (e *Episodes) EpisodeBegan(environment string) { e.running.WithLabelValues(environment).Inc() }

// EpisodeEnded counts an ended episode. outcome is "done", "truncated", "masked" or "closed"; reason is
// the failure kind of a masked one, otherwise "".
func (e *Episodes) EpisodeEnded(environment, outcome, reason string) {
	e.running.WithLabelValues(environment).Dec()
	e.ended.WithLabelValues(environment, outcome, reason).Inc()
}
