package e2e

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
)

// traced is a call as returned by GET /calls/{id} and GET /calls.
type traced struct {
	ID      string `json:"id"`
	TraceID string `json:"trace_id"`
}

// wantTraceID waits until the call and its record have the trace; "" means none.
func wantTraceID(t testing.TB, d *door, id, trace string) {
	t.Helper()
	eventually(t, soon, "the trace of the call", func() error {
		var one traced
		if d.read(t, "/calls/"+url.PathEscape(id)+"?wait=10", &one); one.TraceID != trace {
			return fmt.Errorf("call %s is of the trace %q, want %q", id, one.TraceID, trace)
		}
		if found := recordedTraces(t, d, "")[id]; found != trace {
			return fmt.Errorf("the record of call %s is of the trace %q, want %q", id, found, trace)
		}
		return nil
	})
}

// recordedTraces maps the IDs of the newest calls of a query to their traces.
func recordedTraces(t testing.TB, d *door, query string) map[string]string {
	t.Helper()
	var page struct {
		Calls []traced `json:"calls"`
	}
	d.read(t, "/calls?limit=100&"+query, &page)
	all := map[string]string{}
	for _, c := range page.Calls {
		all[c.ID] = c.TraceID
	}
	return all
}

// ownTrace returns the traceparent header of a request in a trace.
func ownTrace(trace, flags string) string {
	return "traceparent: 00-" + trace + "-b7ad6b7169203331-" + flags
}

func TestCallRecordHasItsTraceID(t *testing.T) {
	r := collector(t)
	b := openTracedFleet(t, r)
	door, trace := b.doors[0], "0af7651916cd43dd8448eb211c80319c"
	ask := func(heads ...string) answer {
		return door.ask(t, "POST", toolPath("old", "show"), `{"text":"a"}`, heads...)
	}

	a := ask(ownTrace(trace, "01"))
	wantTraceID(t, door, a.header.Get("Callyard-Call-Id"), trace)
	a = ask()
	wantTraceID(t, door, a.header.Get("Callyard-Call-Id"), traceOf(t, a))
	a = ask(ownTrace(trace, "00")) // its spans are not recorded
	wantTraceID(t, door, a.header.Get("Callyard-Call-Id"), "")
	a = ask("Idempotency-Key: traced") // a stored call
	wantTraceID(t, door, a.header.Get("Callyard-Call-Id"), traceOf(t, a))

	// A held call belongs to the trace of its request, then to the one in which it ran.
	a = door.ask(t, "POST", toolPath(callersServer, "effect"), fmt.Sprintf(`{"path":%q,"id":"traced"}`, b.effects))
	var h held
	decode(t, a.body, &h)
	var now traced
	if door.read(t, "/calls/"+h.CallID, &now); now.TraceID != traceOf(t, a) {
		t.Errorf("a held call is of the trace %q, want %q", now.TraceID, traceOf(t, a))
	}
	wantTraceID(t, door, h.CallID, traceOf(t, door.confirm(t, h.ID, "true")))

	line := `{"server":"old","tool":"show","arguments":{"text":"a"}}` + "\n"
	var s batchState
	decode(t, door.ask(t, "POST", "/batches", strings.Repeat(line, 3), ndjsonType).body, &s)
	door.waitBatch(t, s.ID, answerWithin)
	eventually(t, soon, "the traces of the batch", func() error {
		runs := map[string]bool{}
		for _, span := range r.Spans() {
			if span.Name == "run batch call" {
				runs[span.Trace] = true
			}
		}
		found := recordedTraces(t, door, "batch="+s.ID)
		for id, trace := range found {
			if !runs[trace] {
				return fmt.Errorf("call %s is of the trace %q, which is none of %v", id, trace, runs)
			}
		}
		if len(found) != 3 || len(runs) != 3 {
			return fmt.Errorf("%d records, %d traces", len(found), len(runs))
		}
		return nil
	})
}

func TestCallRecordHasNoTraceIDWithoutTracing(t *testing.T) {
	b := openApprovalFleet(t, staff{doors: 1, approvers: 1, workers: 1, servers: map[string]entry{"old": risky(1, mirrored(legacy))}})
	door := b.doors[0]
	door.waitServers(t, 1, "old")
	for _, heads := range [][]string{{}, {ownTrace("0af7651916cd43dd8448eb211c80319c", "01")}, {ownTrace("0af7651916cd43dd8448eb211c80319c", "01"), "Idempotency-Key: stored"}} {
		a := door.ask(t, "POST", toolPath("old", "show"), `{"text":"a"}`, heads...)
		wantTraceID(t, door, a.header.Get("Callyard-Call-Id"), "")
	}
}
