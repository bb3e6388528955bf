package rest

import (
	"bufio"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/callyard/callyard/pkg/schema"
)

// received is a parsed server-sent event.
type received struct{ Name, ID, Data string }

// reader parses events by the rules of the format.
type reader struct {
	t     testing.TB
	lines *bufio.Reader
}

// comment reads up to the next comment, and fails the test if an event or the end comes first.
func (r *reader) comment() {
	r.t.Helper()
	for {
		line, err := r.lines.ReadString('\n')
		if err != nil || !strings.HasPrefix(line, ":") && strings.TrimRight(line, "\r\n") != "" {
			r.t.Fatalf("a quiet stream sent no comment, but %q, %v", line, err)
		}
		if strings.HasPrefix(line, ":") {
			return
		}
	}
}

func (r *reader) next() (e received, ok bool) {
	r.t.Helper()
	var data []string
	for {
		line, err := r.lines.ReadString('\n')
		if err != nil {
			return received{}, false
		}
		line = strings.TrimRight(line, "\r\n")
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "" && e.Name+e.ID+strings.Join(data, "") == "":
		case line == "":
			e.Data = strings.Join(data, "\n")
			return e, true
		case name == "": // a comment
		case name == "event":
			e.Name = value
		case name == "id":
			e.ID = value
		case name == "data":
			data = append(data, value)
		default:
			r.t.Errorf("an odd line %q", line)
		}
	}
}

func (f *fabric) stream(method, path, body string) (*http.Response, *reader) {
	f.t.Helper()
	r := f.request(method, path, strings.NewReader(body), "Accept", "text/event-stream")
	res, err := f.client.Do(r)
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { _ = res.Body.Close() })
	return res, &reader{t: f.t, lines: bufio.NewReader(res.Body)}
}

func (r *reader) all() (events []received) {
	for {
		e, ok := r.next()
		if !ok {
			return events
		}
		events = append(events, e)
	}
}

func TestProgressComesBeforeTheResult(t *testing.T) {
	t.Parallel()
	f := openFabric(t, nil)
	for _, row := range []struct{ path, body string }{
		{"/servers/demo/tools/steps", "{}"}, {"/calls", `{"server":"demo","tool":"steps"}`},
	} {
		res, r := f.stream("POST", row.path, row.body)
		if res.StatusCode != 200 || res.Header.Get("Content-Type") != "text/event-stream" || res.Header.Get("X-Accel-Buffering") != "no" || res.Header.Get("Callyard-Call-Id") == "" {
			t.Errorf("%d %v", res.StatusCode, res.Header)
		}
		want := []received{
			{"progress", "", `{"progress":1,"total":3}`}, {"progress", "", `{"progress":2,"total":3}`}, {"progress", "", `{"progress":3,"total":3}`},
			{"result", "", `{"content":[]}`},
		}
		if diff := cmp.Diff(want, r.all()); diff != "" {
			t.Error(diff)
		}
	}
}

func TestAResultOfSeveralLinesArrivesWhole(t *testing.T) {
	t.Parallel()
	f := openFabric(t, nil)
	_, r := f.stream("POST", "/servers/demo/tools/lines", "{}")
	want := []received{{"result", "", "{\"content\":\n[],\n\n\"a\":1\n}"}}
	if diff := cmp.Diff(want, r.all()); diff != "" {
		t.Error(diff)
	}
}

func TestErrorsAreEventsOnlyAfterTheStreamBegan(t *testing.T) {
	t.Parallel()
	f := openFabric(t, nil)
	_, r := f.stream("POST", "/servers/demo/tools/late-error", "{}")
	got := r.all()
	if len(got) != 2 || got[0].Name != "progress" || got[1].Name != "error" || !strings.Contains(got[1].Data, `"type":"/problems/result-too-large"`) || !strings.Contains(got[1].Data, `"call_id":"call_`) {
		t.Errorf("%v", got)
	}
	res, _ := f.stream("POST", "/servers/demo/tools/rpc", "{}")
	if res.StatusCode != http.StatusBadGateway || res.Header.Get("Content-Type") != "application/problem+json" {
		t.Errorf("%d %v", res.StatusCode, res.Header)
	}
	res, _ = f.stream("POST", "/servers/demo/tools/strict", "{}")
	if res.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("%d", res.StatusCode)
	}
}

func TestAQuietStreamSendsHeartbeats(t *testing.T) {
	f := openFabric(t, func(o *Options) { o.Heartbeat = 5 * time.Millisecond })
	_, r := f.stream("POST", "/servers/demo/tools/hang", "{}")
	r.comment()
	f.finishHanging()
	if got := r.all(); len(got) != 1 || got[0].Name != "result" {
		t.Errorf("%v", got)
	}
}

func TestEventsShowTheFleetAndEachChangeOfIt(t *testing.T) {
	t.Parallel()
	var draining atomic.Bool
	f := openFabric(t, func(o *Options) { o.Draining = draining.Load })
	res, r := f.stream("GET", "/events", "")
	if res.StatusCode != 200 || res.Header.Get("X-Accel-Buffering") != "no" {
		t.Errorf("%d %v", res.StatusCode, res.Header)
	}
	first, _ := r.next()
	if first.Name != "fleet" || first.ID != "1" || !strings.Contains(first.Data, `"exited with code 3"`) || !strings.Contains(first.Data, `"workers":[{"id":"worker-1"`) {
		t.Errorf("%v", first)
	}
	f.Worker.Change(func(w *schema.Worker) {
		w.Servers[1].State, w.Servers[1].Error = schema.StateTimeout, "not ready within 20s"
	})
	for {
		e, ok := r.next()
		if !ok {
			t.Fatal("the stream ended")
		}
		if strings.Contains(e.Data, "not ready within 20s") {
			break
		}
	}
	draining.Store(true)
	for range r.all() { // until it ends
	}
}
