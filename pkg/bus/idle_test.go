package bus_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/schema"
)

// held is a worker that passes on where to answer a call.
type held chan func(l *bus.Listener) (add func())

func (h held) Call(f *bus.CallFrame, to bus.ReplyTo) {
	seq := f.Seq
	h <- func(l *bus.Listener) func() { return l.AddToIdle(to, seq) }
}

func (held) Cancel(uint64) {}

// Each start of a front door has another subject for replies. A worker runs for months.
func TestWorkerDropsWhatItKeepsForRoutersThatHaveStopped(t *testing.T) {
	s := bustest.Start(t)
	a := listen(t, s.Connect(t, "worker"), "w1")
	conn := s.Connect(t, "router")
	live := client(t, conn)
	echo := func(cl *bus.Client) {
		t.Helper()
		w, _ := send(t, cl, "w1", "echo", `"a"`)
		if f := w.next(t); f.Kind != bus.ReplyResult || string(f.Payload) != `"a"` {
			t.Fatalf("%+v", f)
		}
	}
	echo(live)
	before := runtime.NumGoroutine()
	for range 20 {
		cl, err := conn.NewClient(schema.NewID("router"))
		if err != nil {
			t.Fatal(err)
		}
		echo(cl)
		if err := cl.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if n := a.l.SweepIdle(); n != 0 {
		t.Errorf("%d routers are remembered", n)
	}
	late, tick := time.NewTimer(30*time.Second), time.NewTicker(10*time.Millisecond)
	defer late.Stop()
	defer tick.Stop()
	for runtime.NumGoroutine() > before {
		select {
		case <-tick.C:
		case <-late.C:
			t.Fatal("the goroutines for them do not end")
		}
	}
	echo(live)
	if n := a.l.SweepIdle(); n != 0 {
		t.Errorf("%d routers are remembered again", n)
	}
}

func TestReplyIsSentAlsoIfItsOutboxWasJustDropped(t *testing.T) {
	s := bustest.Start(t)
	h := make(held, 1)
	l, err := s.Connect(t, "worker").Listen("w1", h)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	w, _ := send(t, client(t, s.Connect(t, "router")), "w1", "hold", `"a"`)
	add := (<-h)(l)
	if n := l.SweepIdle(); n != 0 {
		t.Fatalf("%d outboxes", n)
	}
	add()
	if f := w.next(t); f.Kind != bus.ReplyResult || string(f.Payload) != `"late"` {
		t.Errorf("%+v", f)
	}
}
