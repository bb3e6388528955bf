package telemetry

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// maxUsagePairs limits the pairs of tenant and server. Each adds about ten time series.
const maxUsagePairs = 1000

// Usage counts the same values as the hourly usage, at the same time, and exports the current use of
// tenants. Its methods are safe for concurrent use.
type Usage struct {
	metrics *Metrics
	calls   *prometheus.CounterVec
	held    *prometheus.CounterVec
	seconds *prometheus.CounterVec
	bytes   *prometheus.CounterVec
	tenants *prometheus.GaugeVec // calls in flight of tenants that have limits

	mu    sync.Mutex
	pairs map[[2]string]bool
}

// Usage returns the metrics of usage.
func (m *Metrics) Usage() *Usage { return m.usage }

// addUsage registers the metrics of usage.
func (m *Metrics) addUsage() {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, append([]string{"tenant", "server"}, labels...))
	}
	m.usage = &Usage{
		metrics: m, pairs: map[[2]string]bool{},
		calls:   counter("callyard_usage_calls_total", "Calls that ended, as GET /usage counts them, by tenant, server and outcome.", "outcome"),
		held:    counter("callyard_usage_held_total", "Calls that waited for an approval or ran with one, as GET /usage counts them, by tenant and server."),
		seconds: counter("callyard_usage_seconds_total", "Time of calls at MCP servers, as GET /usage counts it, by tenant and server."),
		bytes:   counter("callyard_usage_bytes_total", "Bytes of arguments (in) and results (out), as GET /usage counts them, by tenant, server and direction.", "direction"),
		tenants: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "callyard_tenant_calls_in_flight", Help: "Calls in flight at all front doors of tenants with limits: own ones within their nominal, borrowed ones beyond it, and those that others have borrowed of it (lent)."}, []string{"tenant", "share"}),
	}
	m.registry.MustRegister(m.usage.calls, m.usage.held, m.usage.seconds, m.usage.bytes, m.usage.tenants)
}

// UsageCounts are increments for one tenant and server. A negative increment, which occurs if a
// record corrects an earlier one, is ignored.
type UsageCounts struct {
	Outcomes map[string]int64 // ended calls
	Held     int64
	Seconds  float64
	In, Out  int64 // bytes
}

// Count adds counts. tenant and server are names; server is "" for calls without a server.
func (u *Usage) Count(tenant, server string, c UsageCounts) {
	if server == "" {
		server = "unknown"
	}
	tenant, server = u.labels(tenant, u.metrics.server(server))
	for outcome, n := range c.Outcomes {
		if n > 0 {
			u.calls.WithLabelValues(tenant, server, outcome).Add(float64(n))
		}
	}
	u.held.WithLabelValues(tenant, server).Add(float64(max(c.Held, 0)))
	u.seconds.WithLabelValues(tenant, server).Add(max(c.Seconds, 0))
	u.bytes.WithLabelValues(tenant, server, "in").Add(float64(max(c.In, 0)))
	u.bytes.WithLabelValues(tenant, server, "out").Add(float64(max(c.Out, 0)))
}

// labels returns the label values of a pair, or "other" for both if there are too many pairs.
func (u *Usage) labels(tenant, server string) (string, string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	pair := [2]string{tenant, server}
	if !u.pairs[pair] {
		if len(u.pairs) >= maxUsagePairs {
			return other, other
		}
		u.pairs[pair] = true
	}
	return tenant, server
}

// TenantCalls are the calls in flight of a tenant that has limits.
type TenantCalls struct{ Own, Borrowed, Lent int }

// SetTenants sets the calls in flight of tenants that have limits, at all front doors, by tenant
// name. Tenants over the limit are counted together, as in Count.
func (u *Usage) SetTenants(all map[string]TenantCalls) {
	sum := make(map[string]TenantCalls, len(all))
	for tenant, c := range all {
		name, _ := u.labels(tenant, "")
		was := sum[name]
		sum[name] = TenantCalls{was.Own + c.Own, was.Borrowed + c.Borrowed, was.Lent + c.Lent}
	}
	for name, c := range sum {
		u.tenants.WithLabelValues(name, "own").Set(float64(c.Own))
		u.tenants.WithLabelValues(name, "borrowed").Set(float64(c.Borrowed))
		u.tenants.WithLabelValues(name, "lent").Set(float64(c.Lent))
	}
}
