package dispatch

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/kit/polltest"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/schema"
)

func TestALostReplyIsRequestedWhenNATSIsBack(t *testing.T) {
	srv := bustest.Start(t)
	r := startRouter(t, srv)
	got := make(chan struct{}, 5)
	var asked atomic.Int64
	startScripted(t, srv, r, "w", func(w *scripted, f *bus.CallFrame, to bus.ReplyTo) {
		if f.Method != bus.MethodOutcomes {
			got <- struct{}{} // its reply is lost with NATS
			return
		}
		asked.Add(1)
		w.outcomes(t, f, to, func(_ *bus.OutcomeQuery, id schema.CallID) bus.Outcome {
			switch id {
			case "call_failed":
				return bus.Outcome{State: bus.OutcomeEnded, Err: schema.Errorf(schema.KindProtocol, "It has ended badly.")}
			case "call_forgotten":
				return bus.Outcome{State: bus.OutcomeForgotten}
			}
			return bus.Outcome{State: bus.OutcomeEnded, Result: &schema.Result{Body: []byte(`{"of":"` + id + `"}`), ToolError: true}}
		})
	})
	type end struct {
		res *schema.Result
		err error
	}
	run := func(id schema.CallID, durable bool, approval schema.ApprovalID) <-chan end {
		ended := make(chan end, 1)
		c := call(false)
		c.ID, c.Durable, c.Approval, c.Timeout = id, durable, approval, 10*time.Minute
		go func() {
			res, err := r.Do(context.Background(), c)
			ended <- end{res, err}
		}()
		<-got
		return ended
	}
	done, failed, approved := run("call_done", true, ""), run("call_failed", true, ""), run("call_approved", false, "appr_1")
	plain, forgotten := run("call_plain", false, ""), run("call_forgotten", false, "")
	srv.Stop()
	srv.Again(t)
	if e := <-done; e.err != nil || string(e.res.Body) != `{"of":"call_done"}` || !e.res.ToolError || e.res.Worker != "w" {
		t.Errorf("ended as %+v, %v", e.res, e.err)
	}
	if e := <-failed; schema.KindOf(e.err) != schema.KindProtocol || schema.AsError(e.err).CallID != "call_failed" {
		t.Errorf("ended as %+v, %v", e.res, e.err)
	}
	if e := <-approved; e.err != nil || string(e.res.Body) != `{"of":"call_approved"}` {
		t.Errorf("the approved call ended as %+v, %v", e.res, e.err)
	}
	if e := <-plain; e.err != nil || string(e.res.Body) != `{"of":"call_plain"}` {
		t.Errorf("the plain call ended as %+v, %v", e.res, e.err)
	}
	if e := <-forgotten; schema.KindOf(e.err) != schema.KindOutcomeUnknown {
		t.Errorf("the forgotten call ended as %+v, %v", e.res, e.err)
	}
	if n := asked.Load(); n != 2 {
		t.Errorf("the worker was asked %d times about three calls of a ledger and two others", n)
	}
	idle(t, r)
}

func TestOnlyAWorkerOfAnotherProcessRemembersPlainCalls(t *testing.T) {
	srv := bustest.Start(t)
	for _, local := range []*bus.Local{nil, {}} {
		r, err := New(srv.ConnectLocal(t, "router", local), schema.NewID("router"), Options{}, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		brief := make(chan bool, 1)
		w := &scripted{id: "w", listening: make(chan struct{}), answer: func(w *scripted, f *bus.CallFrame, to bus.ReplyTo) {
			brief <- f.Brief
			echo(w, f, to)
		}}
		conn := srv.ConnectLocal(t, "w", local)
		if w.l, err = conn.Listen(w.id, w); err != nil {
			t.Fatal(err)
		}
		close(w.listening)
		heard(t, conn)
		r.SetWorker(&schema.Worker{ID: "w", Servers: []schema.Server{{ID: "s", State: schema.StateInitialized, Slots: 8}}})
		if _, err := r.Do(t.Context(), call(false)); err != nil {
			t.Fatal(err)
		}
		if got := <-brief; got == (local != nil) {
			t.Errorf("in one process: %v; it remembers the call: %v", local != nil, got)
		}
		w.l.Close()
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestCallWaitsForWorkerToReconnectAfterNATSRestart checks a worker that has not reconnected after the
// router has: its call waits for a while.
func TestCallWaitsForWorkerToReconnectAfterNATSRestart(t *testing.T) {
	srv := bustest.Start(t)
	r := startRouter(t, srv)
	got := make(chan struct{}, 1)
	_, conn := startScripted(t, srv, r, "slow", func(*scripted, *bus.CallFrame, bus.ReplyTo) { got <- struct{}{} })
	back := make(chan struct{})
	defer r.conn.OnReconnect(func() { close(back) })()
	ended := make(chan error, 1)
	go func() {
		_, err := r.Do(context.Background(), call(false))
		ended <- err
	}()
	<-got
	srv.Stop()
	conn.Close()
	srv.Again(t)
	<-back
	w := r.worker("slow")
	w.missed.Store(0) // reset the checks that the router made itself
	r.lost.look(t.Context(), "slow")
	waiting := false
	r.client.Waiting(func(_ uint64, _ schema.WorkerID, to bus.Receiver) {
		_, isCall := to.(*attempt) // the router may also be asking the worker for its outcome
		waiting = waiting || isCall
	})
	if !waiting {
		t.Error("its call ended at once")
	}
	w.missed.Store(r.clock.now() - int64(roamGrace))
	r.lost.look(t.Context(), "slow")
	if err := <-ended; schema.KindOf(err) != schema.KindOutcomeUnknown {
		t.Errorf("ended as %v", err)
	}
}

func TestListenersAreNotifiedOfCancellationsAtOtherRouters(t *testing.T) {
	srv := bustest.Start(t)
	one, other := startRouter(t, srv), startRouter(t, srv)
	heard := make(chan schema.CallID, 10)
	stop := one.OnCancel(func(id schema.CallID) { heard <- id })
	if err := other.Cancel("call_1"); err != nil {
		t.Fatal(err)
	}
	if id := <-heard; id != "call_1" {
		t.Errorf("heard of %s", id)
	}
	stop()
	last := make(chan schema.CallID, 1)
	defer one.OnCancel(func(id schema.CallID) { last <- id })()
	if err := other.Cancel("call_2"); err != nil {
		t.Fatal(err)
	}
	<-last
	if len(heard) != 0 {
		t.Errorf("after its end it hears of %s", <-heard)
	}
}

// forgetful is a worker that receives its first call but does not know it when asked, as if it
// never got the message.
func forgetful(t *testing.T, seqs chan<- uint64, refuses bool) func(w *scripted, f *bus.CallFrame, to bus.ReplyTo) {
	return func(w *scripted, f *bus.CallFrame, to bus.ReplyTo) {
		if f.Method != bus.MethodOutcomes {
			seqs <- f.Seq
			if w.calls.Load() > 1 {
				w.l.Result(to, f.Seq, &schema.Result{Body: []byte(`{"once":"more"}`)})
			}
			return
		}
		w.outcomes(t, f, to, func(q *bus.OutcomeQuery, _ schema.CallID) bus.Outcome {
			return bus.Outcome{State: bus.OutcomeNever, Refused: refuses && len(q.Seqs) == len(q.CallIDs)}
		})
	}
}

// outcomes answers an outcome query.
func (s *scripted) outcomes(t *testing.T, f *bus.CallFrame, to bus.ReplyTo, of func(q *bus.OutcomeQuery, id schema.CallID) bus.Outcome) {
	var q bus.OutcomeQuery
	if err := json.Unmarshal(f.Payload, &q); err != nil {
		t.Error(err)
	}
	var answer []byte
	for _, id := range q.CallIDs {
		outcome := of(&q, id)
		outcome.CallID = id
		answer = bus.AppendOutcome(answer, &outcome)
	}
	s.l.Result(to, f.Seq, &schema.Result{Body: answer})
}

func TestCallLostInTransitIsResentAfterItsWorkerReconnects(t *testing.T) {
	srv := bustest.Start(t)
	r := startRouter(t, srv)
	seqs := make(chan uint64, 3)
	startScripted(t, srv, r, "moves", forgetful(t, seqs, true))
	c := call(false)
	c.Durable, c.Timeout = true, 10*time.Minute
	ended := make(chan schema.WorkerID, 1)
	go func() {
		res, err := r.Do(context.Background(), c)
		if err != nil {
			ended <- schema.WorkerID(err.Error())
			return
		}
		ended <- res.Worker
	}()
	<-seqs
	startScripted(t, srv, r, "other", echo)
	r.SetWorker(&schema.Worker{ID: "moves", Links: 1, Servers: []schema.Server{{ID: "s", State: schema.StateInitialized, Slots: 8}}})
	if got := <-ended; got != "other" {
		t.Errorf("it ended as %q", got)
	}
	idle(t, r)
}

func TestCallIsNotResentIfWorkerCannotProveItNeverRan(t *testing.T) {
	srv := bustest.Start(t)
	r := startRouter(t, srv)
	seqs := make(chan uint64, 3)
	old, _ := startScripted(t, srv, r, "old", forgetful(t, seqs, false))
	c := call(false)
	c.Durable, c.Timeout = true, 10*time.Minute
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		_, err := r.Do(ctx, c)
		ended <- err
	}()
	<-seqs
	other, _ := startScripted(t, srv, r, "other", echo)
	r.SetWorker(&schema.Worker{ID: "old", Links: 1, Servers: []schema.Server{{ID: "s", State: schema.StateInitialized, Slots: 8}}})
	polltest.Until(t, "the worker has the call and the query", func() bool { return old.calls.Load() >= 2 })
	// The answer to a second query arrives after that to the first.
	if _, err := r.Ask(ctx, "old", []schema.CallID{"call_y"}, 0); err != nil {
		t.Error(err)
	}
	cancel()
	if err := <-ended; !schema.AsError(err).CancelRequested || other.calls.Load() != 0 {
		t.Errorf("it ended as %v, and the other worker was called %d times", err, other.calls.Load())
	}
}
