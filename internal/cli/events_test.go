package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/kit/backoff"
)

// textWaiter is a writer that signals when a text has been written.
type textWaiter struct {
	mu   sync.Mutex
	b    bytes.Buffer
	text string
	seen chan struct{}
}

func newTextWaiter(text string) *textWaiter {
	return &textWaiter{text: text, seen: make(chan struct{})}
}

// Write implements [io.Writer].
func (w *textWaiter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := strings.Contains(w.b.String(), w.text)
	w.b.Write(p)
	if !before && strings.Contains(w.b.String(), w.text) {
		close(w.seen)
	}
	return len(p), nil
}

func (w *textWaiter) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.String()
}

// eventDoor sends one of the streams to each connection. The last one remains open
// until the client disconnects.
func eventDoor(t *testing.T, streams ...string) *door {
	t.Helper()
	var n atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i := int(n.Add(1)) - 1
		if i >= len(streams) {
			t.Errorf("connection %d was not expected", i+1)
			return
		}
		if streams[i] == "" {
			w.WriteHeader(http.StatusBadGateway) // like a proxy while the front door restarts
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, streams[i])
		if err := http.NewResponseController(w).Flush(); err != nil {
			t.Error(err)
		}
		if i == len(streams)-1 {
			<-r.Context().Done()
		}
	}))
	t.Cleanup(s.Close)
	return &door{Server: s}
}

// fleetEvent returns an event with one line of data.
func fleetEvent(data string) string {
	return "event: fleet\nid: 1\ndata: " + strings.TrimSpace(data) + "\n\n"
}

// followed follows the events of the door until out has received the text of its tap.
func followed(t *testing.T, d *door, out *textWaiter, asJSON bool) (note string) {
	t.Helper()
	var notes bytes.Buffer
	c := clientOf(t, d, out, &notes)
	if asJSON {
		c.out.format = formatJSON
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() {
		f := follower{c: c, pauses: backoff.Policy{First: time.Millisecond, Max: time.Millisecond}}
		done <- f.follow(ctx)
	}()
	select {
	case <-out.seen:
	case err := <-done:
		t.Fatalf("it ended by itself with %v after %q", err, out.String())
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("stopped by its user it ended with %v", err)
	}
	return notes.String()
}

func TestEventsArePrintedAsChanges(t *testing.T) {
	plainEnvironment(t)
	out := newTextWaiter("the end")
	followed(t, eventDoor(t, fleetEvent(recorded(t, "fleet-1.json"))+fleetEvent(recorded(t, "fleet-1.json"))+": alive\n\n"+
		fleetEvent(recorded(t, "fleet-2.json"))+"event: approval\ndata: {\"id\":\"apr_1\",\n"+"data: \"note\":\"the end\"}\n\n"), out, false)
	golden(t, "events", out.String())
}

func TestWithJSONEachEventIsOneLine(t *testing.T) {
	plainEnvironment(t)
	out := newTextWaiter("\"last\"")
	followed(t, eventDoor(t, "event: fleet\ndata: {\"at\": 1,\ndata: \"n\": 9007199254740993}\n\nevent: fleet\ndata: {\"the\":\"last\"}\n\n"), out, true)
	if want := "{\"at\":1,\"n\":9007199254740993}\n{\"the\":\"last\"}\n"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}

func TestEventsReconnectWithoutDuplicates(t *testing.T) {
	plainEnvironment(t)
	out := newTextWaiter("worker-b-1 is draining")
	note := followed(t, eventDoor(t, fleetEvent(recorded(t, "fleet-1.json")), "", fleetEvent(recorded(t, "fleet-2.json"))), out, false)
	if strings.Count(out.String(), "worker-a-1 started") != 1 || strings.Count(note, "reconnecting") != 2 {
		t.Errorf("%s\nnotes: %s", out.String(), note)
	}
}

func TestRefusalEndsTheEventStream(t *testing.T) {
	plainEnvironment(t)
	for name, c := range map[string]struct {
		answer answer
		code   int
	}{
		"no key":       {problemAnswer(401, `{"status":401,"detail":"Send a key."}`), exitRefused},
		"starting":     {problemAnswer(503, `{"status":503,"detail":"Not yet."}`), exitUnreachable},
		"no stream":    {jsonAnswer(`{}`), exitUnreachable},
		"empty stream": {eventsAnswer(""), exitUnreachable},
	} {
		d := openDoor(t, map[string]answer{"GET /events": c.answer})
		stdout, stderr, code := typed(t, "", "events", "--url", d.URL)
		if code != c.code || stdout != "" || stderr == "" || len(d.requests()) != 1 {
			t.Errorf("%s: code %d, %s", name, code, fmt.Sprint(stdout, stderr))
		}
	}
}
