package catalog

import (
	"bytes"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/store/servertable"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/schema"
)

// refusingWorker refuses every request with its reason.
type refusingWorker struct {
	l      *bus.Listener
	ready  chan struct{}
	why    atomic.Pointer[string]
	method atomic.Pointer[string] // of the last request
	asked  atomic.Int32
}

// newRefusingWorker returns a worker "w" and the reader of another catalog that knows only it.
func newRefusingWorker(t *testing.T, srv *bustest.Server, c *Catalog, log *slog.Logger) (*refusingWorker, *reader) {
	t.Helper()
	w := &refusingWorker{ready: make(chan struct{})}
	w.refuses("No.")
	var err error
	if w.l, err = srv.Connect(t, "w").Listen("w", w); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.l.Close)
	close(w.ready)
	me := schema.Worker{ID: "w", APIServers: true}
	c.router.SetWorker(&me)
	return w, &reader{c: &Catalog{added: c.added, router: c.router, log: log, workers: map[schema.WorkerID]*seenWorker{"w": {Worker: me}}}}
}

func (r *refusingWorker) refuses(why string) { r.why.Store(&why) }

func (r *refusingWorker) Call(f *bus.CallFrame, to bus.ReplyTo) {
	<-r.ready
	r.method.Store(&f.Method)
	r.asked.Add(1)
	r.l.Error(to, f.Seq, schema.Errorf(schema.KindInvalidRequest, "%s", *r.why.Load()), false, 0)
}

func (*refusingWorker) Cancel(uint64) {}

func TestARefusalOfAnAddedServerIsLoggedOnce(t *testing.T) {
	srv := bustest.Start(t)
	c := open(t, srv)
	var log bytes.Buffer
	w, r := newRefusingWorker(t, srv, c, slog.New(slog.NewTextHandler(&log, nil)))
	w.refuses("There is no such program.")
	if err := c.added.Put(t.Context(), servertable.Server{ID: "s", Definition: []byte(`{}`)}); err != nil {
		t.Fatal(err)
	}
	await(t, c, "the row", func() bool { _, ok := c.added.Get(servertable.Key("s")); return ok })
	logged := func(attempts int32, lines int) {
		t.Helper()
		r.spread(t.Context())
		if n := strings.Count(log.String(), "did not accept"); w.asked.Load() != attempts || n != lines {
			t.Errorf("%d lines after %d attempts, want %d after %d:\n%s", n, w.asked.Load(), lines, attempts, log.String())
		}
	}
	logged(1, 1)
	logged(2, 1)
	w.refuses("There is no such folder.")
	logged(3, 2)
	logged(4, 2)
	r.c.workers["w"].Servers = []schema.Server{{ID: "s"}} // it runs there for a while
	logged(4, 2)
	r.c.workers["w"].Servers = nil
	logged(5, 3)
}

func TestAServerThatIsNotAddedIsReportedOnceWithItsStderr(t *testing.T) {
	long := strings.Repeat("line of a long trace\n", 100) + "the fault"
	for _, c := range []struct{ err, stderr, want string }{
		{"The server \"s\" did not start: the process exited with code 3.", "Traceback:\n  no module\n", "The server \"s\" did not start: the process exited with code 3. The end of its stderr:\nTraceback:\n  no module"},
		{"The server \"s\" did not start: no.", "\n", "The server \"s\" did not start: no."},
		{"", "", "Server \"s\" did not start."},
	} {
		s := Server{Server: schema.Server{ID: "s", Error: c.err, StderrTail: c.stderr}}
		if e := notStarted(&s); e.Detail != c.want || e.Kind != schema.KindServerFailed {
			t.Errorf("%q, want %q", e.Detail, c.want)
		}
	}
	e := notStarted(&Server{Server: schema.Server{ID: "s", Error: "No.", StderrTail: long}})
	if !strings.HasPrefix(e.Detail, "No. The end of its stderr:\nline of") || !strings.HasSuffix(e.Detail, "\nthe fault") || len(e.Detail) > maxStderrQuote+50 {
		t.Errorf("%d bytes: %q", len(e.Detail), e.Detail)
	}
}

func TestARemovedServerThatStillRunsIsNotListed(t *testing.T) {
	srv := bustest.Start(t)
	h := newAnnouncingWorker(t, srv, "w", map[schema.ServerID]*schema.Definitions{"file": tools(`{"name":"a"}`), "gone": tools(`{"name":"a"}`)})
	h.change(func(w *schema.Worker) {
		for i := range w.Servers {
			w.Servers[i].Added = w.Servers[i].ID == "gone"
		}
	})
	c := open(t, srv) // it was removed before this front door started
	h.heartbeat()
	await(t, c, "the server of the file", has(c, "file", "a"))
	if s, err := c.Server("gone"); schema.KindOf(err) != schema.KindNotFound {
		t.Errorf("%+v, %v", s, err)
	}
	if err := c.Operator().Remove(t.Context(), "gone"); schema.KindOf(err) != schema.KindNotFound {
		t.Errorf("removing it again: %v", err)
	}
	if err := c.added.Put(t.Context(), servertable.Server{ID: "gone", Definition: []byte(`{}`)}); err != nil {
		t.Fatal(err)
	}
	await(t, c, "the server that was added again", has(c, "gone", "a"))
}

func TestARemovedServerThatStillRunsIsStopped(t *testing.T) {
	srv := bustest.Start(t)
	c := open(t, srv)
	w, r := newRefusingWorker(t, srv, c, slog.New(slog.DiscardHandler))
	r.c.workers["w"].Servers = []schema.Server{{ID: "file"}, {ID: "gone", Added: true}, {ID: "there", Added: true}}
	if err := c.added.Put(t.Context(), servertable.Server{ID: "there", Definition: []byte(`{}`)}); err != nil {
		t.Fatal(err)
	}
	await(t, c, "the row", func() bool { _, ok := c.added.Get(servertable.Key("there")); return ok })
	now := time.Now()
	for _, step := range []struct {
		after time.Duration
		asked int32
	}{{0, 0}, {addTimeout - time.Second, 0}, {addTimeout, 1}, {addTimeout + time.Second, 1}, {2 * addTimeout, 2}} {
		r.stopOrphans(t.Context(), now.Add(step.after))
		if n := w.asked.Load(); n != step.asked {
			t.Errorf("after %s the worker was asked %d times, want %d", step.after, n, step.asked)
		}
	}
	if method := w.method.Load(); method == nil || *method != bus.MethodStop {
		t.Errorf("it was asked with another method: %v", method)
	}
	r.c.workers["w"].Servers = nil // it obeyed
	r.stopOrphans(t.Context(), now.Add(4*addTimeout))
	if len(r.orphans) != 0 || w.asked.Load() != 2 {
		t.Errorf("%v is still remembered", r.orphans)
	}
}
