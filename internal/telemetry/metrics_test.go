package telemetry

import (
	"fmt"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

func scrape(t testing.TB, m *Metrics) string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if w.Code != 200 {
		t.Fatalf("code %d: %s", w.Code, w.Body)
	}
	return w.Body.String()
}

func wantLines(t *testing.T, page string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !strings.Contains("\n"+page, "\n"+line+"\n") {
			t.Errorf("no line %q", line)
		}
	}
}

func TestEveryMetricIsServed(t *testing.T) {
	m := NewMetrics()
	m.CallStarted()
	m.CallStarted()
	m.CallEnded("files", "read", "ok", 3*time.Millisecond)
	m.CallStarted()
	m.CallDeferred("files", "held")
	m.SetWaiting("files", 4, 90*time.Second)
	m.SetApprovals(3, time.Hour)
	m.SetHeld(5, 4096)
	m.SetBatches(2, time.Minute)
	m.SetPace(250)
	m.LeaseLost()
	m.RecordsLost(7)
	m.SpansDropped("full", 5)
	m.Unexpected("origin")
	m.SetWorkers(2)
	m.SetSessions("files", 3)
	m.SetServerUp("files", true)
	m.SetServerUp("broken", false)
	stop := m.NATS("worker", func() bool { return true })
	Redis(m, func() bool { return false })
	m.NATS("approver", func() bool { return false })
	m.SessionRestarted("files")
	m.ProtocolNoise("files", 1)
	m.HTTPRequest("POST", 200)
	m.HTTPRequest("POST", 200)
	m.HTTPRequest("BREW", 418)
	m.HTTPRequest("GET", 999)
	page := scrape(t, m)
	wantLines(t, page,
		`callyard_calls_total{outcome="ok",server="files",tool="read"} 1`,
		`callyard_call_seconds_bucket{server="files",le="0.0025"} 0`,
		`callyard_call_seconds_bucket{server="files",le="0.005"} 1`,
		`callyard_call_seconds_count{server="files"} 1`,
		`callyard_calls_in_flight 1`,
		`callyard_calls_deferred_total{server="files",state="held"} 1`,
		`callyard_waiting_calls{server="files"} 4`,
		`callyard_tool_seconds_total{server="files",tool="read"} 0.003`,
		`callyard_waiting_oldest_seconds{server="files"} 90`,
		`callyard_approvals_waiting 3`,
		`callyard_approvals_oldest_seconds 3600`,
		`callyard_held_calls 5`,
		`callyard_held_bytes 4096`,
		`callyard_batches_open 2`,
		`callyard_batches_oldest_seconds 60`,
		`callyard_batches_pace 250`,
		`callyard_leases_lost_total 1`,
		`callyard_records_lost_total 7`,
		`callyard_unexpected_messages_total{reason="origin"} 1`,
		`callyard_trace_spans_dropped_total{reason="full"} 5`,
		`callyard_workers 2`,
		`callyard_sessions{server="files"} 3`,
		`callyard_server_up{server="files"} 1`,
		`callyard_server_up{server="broken"} 0`,
		`callyard_nats_connected{role="worker"} 1`,
		`callyard_nats_connected{role="approver"} 0`,
		`callyard_redis_up 0`,
		`callyard_session_restarts_total{server="files"} 1`,
		`callyard_protocol_noise_total{server="files"} 1`,
		`callyard_http_requests_total{code="200",method="POST"} 2`,
		`callyard_http_requests_total{code="418",method="other"} 1`,
		`callyard_http_requests_total{code="other",method="GET"} 1`,
	)
	if !regexp.MustCompile(`(?m)^callyard_build_info\{go_version="go[^"]+",version="[^"]+"\} 1$`).MatchString(page) {
		t.Error("no callyard_build_info with its versions")
	}
	stop()
	if strings.Contains(scrape(t, m), `role="worker"`) {
		t.Error("a connection that is closed is still shown")
	}
	for _, name := range []string{"go_goroutines", "process_start_time_seconds"} {
		if !strings.Contains(page, "\n"+name+" ") {
			t.Errorf("no %s", name)
		}
	}
	m.ForgetServer("files")
	page = scrape(t, m)
	if strings.Contains(page, `callyard_sessions{`) || strings.Contains(page, `callyard_waiting_calls{`) || strings.Contains(page, `callyard_waiting_oldest_seconds{`) {
		t.Error("a server that is gone still has sessions")
	}
	wantLines(t, page, `callyard_session_restarts_total{server="files"} 1`)
}

func TestMetricsInstancesAreIndependent(t *testing.T) {
	a, b := NewMetrics(), NewMetrics()
	a.SetWorkers(5)
	wantLines(t, scrape(t, b), "callyard_workers 0")
}

func TestNumberOfSeriesIsBounded(t *testing.T) {
	m := NewMetrics()
	const calls = maxTools + 500
	for i := range calls {
		m.CallStarted()
		m.CallEnded("s", fmt.Sprintf("tool%d", i), "ok", time.Millisecond)
	}
	m.CallStarted()
	m.CallEnded("s", "tool7", "timeout", time.Millisecond)
	page := scrape(t, m)
	wantLines(t, page,
		`callyard_calls_total{outcome="ok",server="s",tool="tool1999"} 1`,
		`callyard_calls_total{outcome="ok",server="s",tool="other"} 500`,
		`callyard_calls_total{outcome="timeout",server="s",tool="tool7"} 1`,
		`callyard_calls_in_flight 0`,
	)
	for i := range 3 * maxServers {
		name := fmt.Sprintf("server%d", i)
		m.CallStarted()
		m.CallEnded(name, "t", "ok", time.Millisecond)
		m.SetSessions(name, 1)
		m.ProtocolNoise(name, 1)
	}
	for i := range 3 * maxOutcomes {
		m.CallStarted()
		m.CallEnded("s", "tool1", fmt.Sprintf("outcome%d", i), time.Millisecond)
	}
	page = scrape(t, m)
	for metric, most := range map[string]int{
		"callyard_calls_total{":          2*(maxTools+maxServers+1) + maxOutcomes + 1, // including the series of unknown outcomes
		"callyard_call_seconds_count{":   maxServers + 1,
		"callyard_sessions{":             maxServers + 1,
		"callyard_protocol_noise_total{": maxServers + 1,
	} {
		if n := strings.Count(page, "\n"+metric); n > most || n < maxServers {
			t.Errorf("%s has %d series, at most %d are meant", metric, n, most)
		}
	}
	if len(*m.tools.Load()) > maxTools+maxServers+1 {
		t.Errorf("%d tools are held", len(*m.tools.Load()))
	}
}

func TestCountingASeenCallCostsNoAllocation(t *testing.T) {
	m := NewMetrics()
	observe := func() {
		m.CallStarted()
		m.CallEnded("files", "read", "ok", time.Millisecond)
		m.HTTPRequest("POST", 200)
	}
	observe()
	if n := testing.AllocsPerRun(100, observe); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestCountsFromManyCallersAddUp(t *testing.T) {
	m := NewMetrics()
	const each = 200
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range each {
				m.CallStarted()
				m.CallEnded("s", fmt.Sprintf("t%d", i%20), []string{"ok", "tool-error"}[i%2], time.Millisecond)
				m.HTTPRequest("POST", 200+i%3)
			}
		})
	}
	wg.Wait()
	page := scrape(t, m)
	wantLines(t, page,
		`callyard_calls_total{outcome="ok",server="s",tool="t0"} 80`,
		`callyard_calls_total{outcome="tool-error",server="s",tool="t1"} 80`,
		`callyard_call_seconds_count{server="s"} 1600`,
		`callyard_calls_in_flight 0`,
	)
}

func BenchmarkCall(b *testing.B) {
	m := NewMetrics()
	for i := range 1000 {
		m.CallStarted()
		m.CallEnded("files", fmt.Sprintf("t%d", i), "ok", time.Millisecond)
	}
	b.ReportAllocs()
	for b.Loop() {
		m.CallStarted()
		m.CallEnded("files", "t77", "ok", time.Millisecond)
	}
}
