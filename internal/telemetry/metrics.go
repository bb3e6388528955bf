package telemetry

import (
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/callyard/callyard/pkg/schema"
)

// Metrics holds the metrics of a process in a registry of its own. Its methods are safe for
// concurrent use. Names of servers and tools should come from the catalog. Names over a limit count
// as "other".
type Metrics struct {
	registry *prometheus.Registry

	calls         *prometheus.CounterVec
	deferred      *prometheus.CounterVec
	seconds       *prometheus.HistogramVec
	inFlight      prometheus.GaugeFunc
	waiting       *prometheus.GaugeVec
	workers       prometheus.Gauge
	disagree      prometheus.Gauge
	requests      *prometheus.CounterVec
	sessions      *prometheus.GaugeVec
	serving       *prometheus.GaugeVec
	restarts      *prometheus.CounterVec
	retries       *prometheus.CounterVec
	noise         *prometheus.CounterVec
	webhooks      *prometheus.CounterVec
	sandboxes     *prometheus.CounterVec
	sandboxKills  *prometheus.CounterVec
	sandboxState  *prometheus.GaugeVec
	sandboxEgress *prometheus.CounterVec

	spansDropped *prometheus.CounterVec
	unexpected   *prometheus.CounterVec
	toolSeconds  *prometheus.CounterVec
	waitingAge   *prometheus.GaugeVec
	changedTools *prometheus.GaugeVec
	approvals    prometheus.Gauge
	approvalAge  prometheus.Gauge
	heldCalls    prometheus.Gauge
	heldBytes    prometheus.Gauge
	batches      prometheus.Gauge
	batchAge     prometheus.Gauge
	batchPace    prometheus.Gauge
	leasesLost   prometheus.Counter
	recordsLost  prometheus.Counter

	usage *Usage
	load  *load

	// Label values seen so far, for readers that take no lock: maps are replaced, never changed. mu
	// guards their replacement.
	mu      sync.Mutex
	tools   atomic.Pointer[map[toolKey]*toolMetrics]
	servers atomic.Pointer[map[string]string]
	codes   atomic.Pointer[map[requestKey]prometheus.Counter]
}

// secondsBuckets range from the fastest call to a worker in the same process to the longest wait of
// callers.
var secondsBuckets = []float64{
	.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60,
}

// NewMetrics returns metrics at zero.
func NewMetrics() *Metrics {
	server := []string{"server"}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
	}
	gauges := func(name, help string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, server)
	}
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		load:     newLoad(),
		calls:    counter("callyard_calls_total", "Calls that ended, by server, tool and outcome.", "server", "tool", "outcome"),
		deferred: counter("callyard_calls_deferred_total", "Calls that were accepted to run later, by server and state: held (until they are approved) or stored (durable calls). They are counted in callyard_calls_total when they end.", "server", "state"),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "callyard_call_seconds", Help: "Time from admission of a call to its end, by server.", Buckets: secondsBuckets,
		}, server),
		waiting:  gauges("callyard_waiting_calls", "Calls that wait for a free slot, by server."),
		workers:  gauge("callyard_workers", "Live workers."),
		disagree: gauge("callyard_config_disagreements", "Parts of the configuration, counting each server, for which live processes use different versions."),
		requests: counter("callyard_http_requests_total", "HTTP requests answered, by method and status code.", "method", "code"),
		sessions: gauges("callyard_sessions", "Live MCP sessions, by server."),
		serving:  gauges("callyard_server_up", "1 while the server accepts calls, 0 while it starts or if it fails to start, by server."),
		restarts: counter("callyard_session_restarts_total", "MCP sessions that were replaced, by server.", "server"),
		noise:    counter("callyard_protocol_noise_total", "Lines on a server's standard output that were not MCP messages, by server.", "server"),
	}
	m.inFlight = prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "callyard_calls_in_flight", Help: "Calls that were admitted and have not ended."}, m.load.flying)
	m.retries = counter("callyard_call_retries_total", "Attempts that a rule for retries made after the first one, by server and kind of the failure before it.", "server", "kind")
	m.webhooks = counter("callyard_webhooks_total", "Attempts to deliver webhooks, and webhooks that were not accepted, by outcome.", "outcome")
	m.sandboxes = counter("callyard_sandboxes_started_total", "Containers that became ready for a call, by server.", "server")
	m.sandboxKills = counter("callyard_sandboxes_killed_total", "Containers that were killed while they ran a call, by server and reason: deadline, memory or lost.", "server", "reason")
	m.sandboxEgress = counter("callyard_sandbox_egress_total", "Connections that containers requested, by server and decision: allowed or refused.", "server", "decision")
	m.toolSeconds = counter("callyard_tool_seconds_total", "Total time of the calls of a tool, by server and tool.", "server", "tool")
	m.waitingAge = gauges("callyard_waiting_oldest_seconds", "Waiting time of the oldest call with a waiting caller for a free slot, by server.")
	m.changedTools = gauges("callyard_changed_tools", "Tools whose definition nobody has accepted, by server; only servers with pin.")
	m.approvals = gauge("callyard_approvals_waiting", "Approvals that are pending.")
	m.approvalAge = gauge("callyard_approvals_oldest_seconds", "Waiting time of the oldest pending approval.")
	m.heldCalls = gauge("callyard_held_calls", "Calls that are held, or run after being held; they count against the limits on held calls.")
	m.heldBytes = gauge("callyard_held_bytes", "Bytes of the arguments of held calls.")
	m.batches = gauge("callyard_batches_open", "Batches that have not ended.")
	m.batchAge = gauge("callyard_batches_oldest_seconds", "Age of the oldest batch that has not ended.")
	m.batchPace = gauge("callyard_batches_pace", "Calls of batches that can start per second while single calls arrive; 0 means no limit.")
	m.leasesLost = prometheus.NewCounter(prometheus.CounterOpts{Name: "callyard_leases_lost_total", Help: "Journal leases (batches, stored calls) that this front door lost to another one."})
	m.recordsLost = prometheus.NewCounter(prometheus.CounterOpts{Name: "callyard_records_lost_total", Help: "Call records that could not be stored and were dropped."})
	m.spansDropped = counter("callyard_trace_spans_dropped_total", "Trace spans that were dropped, by reason: full (queue full) or failed (export failed).", "reason")
	m.unexpected = counter("callyard_unexpected_messages_total", "NATS messages that were dropped, by reason: origin (unauthorized sender), number (unknown call) or bytes (not decodable).", "reason")
	m.sandboxState = prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "callyard_sandboxes", Help: "Containers of a server, by state: warm (waiting for a call) or in_use."}, []string{"server", "state"})
	m.tools.Store(&map[toolKey]*toolMetrics{})
	m.servers.Store(&map[string]string{})
	m.addUsage()
	expectFaults(m)
	m.codes.Store(&map[requestKey]prometheus.Counter{})
	m.registry.MustRegister(
		m.calls, m.deferred, m.seconds, m.inFlight, m.toolSeconds, m.retries,
		m.waiting, m.waitingAge,
		m.changedTools,
		m.heldCalls, m.heldBytes,
		m.workers, m.disagree,
		m.requests,
		m.sessions, m.serving, m.restarts, m.noise,
		m.webhooks,
		m.sandboxes, m.sandboxKills, m.sandboxState, m.sandboxEgress,
		m.spansDropped,
		m.unexpected,
		m.approvals, m.approvalAge,
		m.batches, m.batchAge, m.batchPace,
		m.leasesLost, m.recordsLost,
		buildInfo(),
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return m
}

// Handler serves the metrics in the formats of Prometheus.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{Registry: m.registry})
}

// CallStarted counts a call in flight. CallEnded or CallDeferred must follow.
func (m *Metrics) CallStarted() { m.load.inFlight.Add(1) }

// CallEnded ends a call of CallStarted. outcome is "ok", "tool-error" or the kind of the error; took
// is the time that its caller waited.
func (m *Metrics) CallEnded(server, tool, outcome string, took time.Duration) {
	m.load.ended(outcome, took.Seconds())
	t := m.tool(server, tool)
	t.ended(outcome).Inc()
	t.seconds.Observe(took.Seconds())
	t.total.Add(max(took.Seconds(), 0))
}

// CallDeferred ends a call of CallStarted that runs later. state is "held" until it is approved, or
// "stored" if it is durable. The call is counted as started again when it runs.
func (m *Metrics) CallDeferred(server, state string) {
	m.load.inFlight.Add(-1)
	m.deferred.WithLabelValues(m.server(server), state).Inc()
}

// SetWaiting sets the number of calls that wait for a slot of the server, and the longest wait among
// those that a caller still waits for; 0 if there is none.
func (m *Metrics) SetWaiting(server string, n int, oldest time.Duration) {
	server = m.server(server)
	m.waiting.WithLabelValues(server).Set(float64(n))
	m.waitingAge.WithLabelValues(server).Set(oldest.Seconds())
}

// SetChangedTools sets the number of tools of the server whose definition was not accepted.
func (m *Metrics) SetChangedTools(server string, n int) {
	m.changedTools.WithLabelValues(m.server(server)).Set(float64(n))
}

// ForgetChangedTools drops the value of SetChangedTools for a server.
func (m *Metrics) ForgetChangedTools(server string) {
	m.changedTools.DeleteLabelValues(m.server(server))
}

// SetApprovals sets the number of pending approvals and the age of the oldest.
func (m *Metrics) SetApprovals(n int, oldest time.Duration) {
	m.approvals.Set(float64(n))
	m.approvalAge.Set(oldest.Seconds())
}

// SetHeld sets the number of calls that are held, or run after they were held, and the bytes of
// their arguments.
func (m *Metrics) SetHeld(calls int, bytes int64) {
	m.heldCalls.Set(float64(calls))
	m.heldBytes.Set(float64(bytes))
}

// SetBatches sets the number of unfinished batches and the age of the oldest.
func (m *Metrics) SetBatches(n int, oldest time.Duration) {
	m.batches.Set(float64(n))
	m.batchAge.Set(oldest.Seconds())
}

// SetPace sets the number of batch calls that may start per second so that single calls stay fast.
// 0 means no limit.
func (m *Metrics) SetPace(rate float64) { m.batchPace.Set(rate) }

// LeaseLost counts a lease of a journal that another front door acquired.
func (m *Metrics) LeaseLost() { m.leasesLost.Inc() }

// Unexpected counts a dropped NATS message; see bus.Conn.OnUnexpected.
func (m *Metrics) Unexpected(reason string) { m.unexpected.WithLabelValues(reason).Inc() }

// RecordsLost counts call records that were dropped.
func (m *Metrics) RecordsLost(n uint64) { m.recordsLost.Add(float64(n)) }

// SetWorkers sets the number of live workers.
func (m *Metrics) SetWorkers(n int) { m.workers.Set(float64(n)) }

// SetSessions sets the number of live sessions of the server.
func (m *Metrics) SetSessions(server string, n int) {
	m.sessions.WithLabelValues(m.server(server)).Set(float64(n))
}

// SetServerUp sets whether the server can take calls.
func (m *Metrics) SetServerUp(server string, up bool) {
	value := 0.0
	if up {
		value = 1
	}
	m.serving.WithLabelValues(m.server(server)).Set(value)
}

// SessionRestarted counts a replaced session of the server.
func (m *Metrics) SessionRestarted(server string) {
	m.restarts.WithLabelValues(m.server(server)).Inc()
}

// CallRetried counts a retry of a call of the server after a failure of the kind. It does nothing on a
// nil *Metrics.
func (m *Metrics) CallRetried(server string, kind schema.RetryKind) {
	if m == nil {
		return
	}
	m.retries.WithLabelValues(m.server(server), string(kind)).Inc()
}

// ProtocolNoise counts n lines on the server's standard output that were not MCP.
func (m *Metrics) ProtocolNoise(server string, n int64) {
	m.noise.WithLabelValues(m.server(server)).Add(float64(n))
}

// SandboxStarted counts a container of the server that became ready for a call.
func (m *Metrics) SandboxStarted(server string) {
	server = m.server(server)
	m.sandboxes.WithLabelValues(server).Inc()
	m.sandboxKills.WithLabelValues(server, "lost") // see expectFaults
}

// SandboxKilled counts a container that was killed during a call of the server: because of its
// "deadline" or its "memory", or because its engine was "lost".
func (m *Metrics) SandboxKilled(server, reason string) {
	m.sandboxKills.WithLabelValues(m.server(server), reason).Inc()
}

// SandboxEgress counts a decision on a destination that a container requested.
func (m *Metrics) SandboxEgress(server string, allowed bool) {
	decision := "refused"
	if allowed {
		decision = "allowed"
	}
	m.sandboxEgress.WithLabelValues(m.server(server), decision).Inc()
}

// SetSandboxes sets the number of containers of the server that wait for a call, and that run one.
func (m *Metrics) SetSandboxes(server string, warm, inUse int) {
	server = m.server(server)
	m.sandboxState.WithLabelValues(server, "warm").Set(float64(warm))
	m.sandboxState.WithLabelValues(server, "in_use").Set(float64(inUse))
}

// SpansDropped counts dropped spans: the queue was "full", or sending "failed".
func (m *Metrics) SpansDropped(reason string, n int) {
	m.spansDropped.WithLabelValues(reason).Add(float64(n))
}

// Webhook counts the outcome of an attempt to deliver a webhook.
func (m *Metrics) Webhook(outcome string) { m.webhooks.WithLabelValues(outcome).Inc() }

// ForgetServer drops the gauges of a server that no longer exists. Its counters stay.
func (m *Metrics) ForgetServer(server string) {
	m.waiting.DeleteLabelValues(m.server(server))
	m.waitingAge.DeleteLabelValues(m.server(server))
	m.sessions.DeleteLabelValues(m.server(server))
	m.serving.DeleteLabelValues(m.server(server))
	m.sandboxState.DeletePartialMatch(prometheus.Labels{"server": m.server(server)})
}

// HTTPRequest counts an answered request. Methods and codes that HTTP does not define count as
// "other".
func (m *Metrics) HTTPRequest(method string, code int) {
	k := requestKey{method, code}
	if c := (*m.codes.Load())[k]; c != nil {
		c.Inc()
		return
	}
	m.addRequest(k).Inc()
}

type requestKey struct {
	method string
	code   int
}

func (m *Metrics) addRequest(k requestKey) prometheus.Counter {
	switch k.method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
	default:
		k.method = other
	}
	code := strconv.Itoa(k.code)
	if http.StatusText(k.code) == "" {
		k.code, code = 0, other
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	seen := *m.codes.Load()
	if c := seen[k]; c != nil {
		return c
	}
	c := m.requests.WithLabelValues(k.method, code)
	m.codes.Store(with(seen, k, c))
	return c
}
