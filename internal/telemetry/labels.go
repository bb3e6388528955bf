package telemetry

import (
	"maps"
	"strings"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/callyard/callyard/pkg/schema"
)

// Limits of label values. Each tool adds a handful of time series, each server about twenty.
const (
	maxTools    = 2_000
	maxServers  = 500
	maxOutcomes = 40
)

// other is the label value for everything over a limit.
const other = "other"

type toolKey struct{ server, tool string }

// toolMetrics are the time series of one tool.
type toolMetrics struct {
	key      toolKey
	metrics  *Metrics
	seconds  prometheus.Observer
	total    prometheus.Counter
	outcomes atomic.Pointer[[]outcomeCounter] // there are few, so a list is faster than a map
}

type outcomeCounter struct {
	outcome string
	calls   prometheus.Counter
}

// tool returns the time series of a tool, or those of "other" if there are too many tools.
func (m *Metrics) tool(server, tool string) *toolMetrics {
	seen := *m.tools.Load()
	if t := seen[toolKey{server, tool}]; t != nil {
		return t
	}
	server = m.server(server)
	if len(seen) >= maxTools {
		tool = other
		if t := seen[toolKey{server, tool}]; t != nil {
			return t
		}
	}
	return m.addTool(toolKey{strings.Clone(server), strings.Clone(tool)})
}

// addTool adds a tool. "other" may exceed the limit by one for each server.
func (m *Metrics) addTool(k toolKey) *toolMetrics {
	m.mu.Lock()
	defer m.mu.Unlock()
	seen := *m.tools.Load()
	if len(seen) >= maxTools {
		k.tool = other
	}
	if t := seen[k]; t != nil {
		return t
	}
	t := &toolMetrics{key: k, metrics: m, seconds: m.seconds.WithLabelValues(k.server), total: m.toolSeconds.WithLabelValues(k.server, k.tool)}
	t.outcomes.Store(&[]outcomeCounter{})
	m.calls.WithLabelValues(k.server, k.tool, string(schema.KindOutcomeUnknown)) // see expectFaults
	m.tools.Store(with(seen, k, t))
	return t
}

// expectFaults creates the series of faults at 0, because a single fault must trigger an alert:
// Prometheus sees no increase in a series that starts at 1.
func expectFaults(m *Metrics) {
	for _, reason := range []string{"origin", "number", "bytes"} {
		m.unexpected.WithLabelValues(reason)
	}
	for _, reason := range []string{droppedFull, droppedFailed} {
		m.spansDropped.WithLabelValues(reason)
	}
}

// ended returns the counter of an outcome.
func (t *toolMetrics) ended(outcome string) prometheus.Counter {
	if c := find(*t.outcomes.Load(), outcome); c != nil {
		return c
	}
	t.metrics.mu.Lock()
	defer t.metrics.mu.Unlock()
	seen := *t.outcomes.Load()
	if len(seen) >= maxOutcomes {
		outcome = other
	}
	if c := find(seen, outcome); c != nil {
		return c
	}
	outcome = strings.Clone(outcome)
	c := t.metrics.calls.WithLabelValues(t.key.server, t.key.tool, outcome)
	grown := append(seen[:len(seen):len(seen)], outcomeCounter{outcome, c})
	t.outcomes.Store(&grown)
	return c
}

func find(seen []outcomeCounter, outcome string) prometheus.Counter {
	for i := range seen {
		if seen[i].outcome == outcome {
			return seen[i].calls
		}
	}
	return nil
}

// server returns the label value of a server: its name, or "other" if there are too many.
func (m *Metrics) server(name string) string {
	seen := *m.servers.Load()
	if label, ok := seen[name]; ok {
		return label
	}
	if len(seen) >= maxServers {
		return other
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	seen = *m.servers.Load()
	if label, ok := seen[name]; ok {
		return label
	}
	if len(seen) >= maxServers {
		return other
	}
	name = strings.Clone(name)
	m.servers.Store(with(seen, name, name))
	return name
}

// with returns a copy of a map with one more entry.
func with[K comparable, V any](seen map[K]V, k K, v V) *map[K]V {
	grown := make(map[K]V, len(seen)+1)
	maps.Copy(grown, seen)
	grown[k] = v
	return &grown
}
