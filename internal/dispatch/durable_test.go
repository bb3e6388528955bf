package dispatch

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/schema"
)

func TestChosenWorkerIsRecordedBeforeSending(t *testing.T) {
	srv := bustest.Start(t)
	r := startRouter(t, srv)
	var mu sync.Mutex
	var story []string
	tell := func(format string, args ...any) {
		mu.Lock()
		story = append(story, fmt.Sprintf(format, args...))
		mu.Unlock()
	}
	startScripted(t, srv, r, "full", func(w *scripted, f *bus.CallFrame, to bus.ReplyTo) {
		tell("%s got it", w.id)
		w.l.Error(to, f.Seq, schema.Errorf(schema.KindUnavailable, "full"), false, 0)
	})
	r.routes["s"].lanes[0].pace = 1 // this lane is preferred
	startScripted(t, srv, r, "good", func(w *scripted, f *bus.CallFrame, to bus.ReplyTo) {
		tell("%s got it, keep %t", w.id, f.Keep)
		echo(w, f, to)
	})
	r.routes["s"].lanes[1].pace = average(time.Hour)
	c := call(false)
	c.Durable = true
	c.Chosen = func(worker schema.WorkerID) { tell("chosen %s", worker) }
	if _, err := r.Do(context.Background(), c); err != nil {
		t.Fatal(err)
	}
	want := []string{"chosen full", "full got it", "chosen good", "good got it, keep true"}
	if diff := cmp.Diff(want, story); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	idle(t, r)
}

func TestCallIsNotSentIfItsIntentCannotBeWritten(t *testing.T) {
	srv := bustest.Start(t)
	r := startRouter(t, srv)
	w, _ := startScripted(t, srv, r, "w", echo)
	ctx, cancel := context.WithCancel(context.Background())
	c := call(false)
	c.Chosen = func(schema.WorkerID) { cancel() }
	if _, err := r.Do(ctx, c); schema.KindOf(err) != schema.KindCanceled || !schema.AsError(err).Retryable {
		t.Errorf("got %+v", err)
	}
	if n := w.calls.Load(); n != 0 {
		t.Errorf("it was sent %d times", n)
	}
	idle(t, r)
}

func TestCallWithIntentIsNotSentToAnUnknownWorker(t *testing.T) {
	srv := bustest.Start(t)
	r := startRouter(t, srv)
	w, conn := startScripted(t, srv, r, "unseen", echo)
	r.RemoveWorker("unseen", false)
	if err := w.l.Offer("s"); err != nil {
		t.Fatal(err)
	}
	heard(t, conn)
	c := call(false)
	c.Chosen = func(id schema.WorkerID) { t.Errorf("%q was chosen", id) }
	if _, err := r.Do(context.Background(), c); schema.KindOf(err) != schema.KindUnavailable {
		t.Errorf("got %v", err)
	}
	if w.calls.Load() != 0 {
		t.Error("the call left")
	}
	w.l.Withdraw("s")
}

func TestCallIsCancelledByIDAtAnyRouter(t *testing.T) {
	srv := bustest.Start(t)
	has, other := startRouter(t, srv), startRouter(t, srv)
	started := make(chan func(), 1)
	w, _ := startScripted(t, srv, has, "w", func(w *scripted, f *bus.CallFrame, to bus.ReplyTo) {
		started <- func() { w.l.Error(to, f.Seq, schema.Errorf(schema.KindCanceled, "cancelled"), true, 0) }
	})
	has.SetWorker(&schema.Worker{ID: "w", Servers: []schema.Server{{ID: "s", State: schema.StateInitialized, Slots: 1}}})
	run := func(id schema.CallID) <-chan error {
		errs := make(chan error, 1)
		c := call(false)
		c.ID = id
		go func() {
			_, err := has.Do(context.Background(), c)
			errs <- err
		}()
		return errs
	}
	running := run("call_running")
	end := <-started
	waiting := run("call_waiting")
	for has.Load()["s"].Waiting == 0 {
		runtime.Gosched() // until it is in flight
	}
	if err := other.Cancel("call_waiting"); err != nil {
		t.Fatal(err)
	}
	if e := schema.AsError(<-waiting); e.Kind != schema.KindCanceled || !e.Retryable || e.CallID != "call_waiting" {
		t.Errorf("the waiting call ended with %+v", e)
	}
	if err := other.Cancel("call_running"); err != nil {
		t.Fatal(err)
	}
	<-w.cancelled
	end()
	if e := schema.AsError(<-running); e.Kind != schema.KindOutcomeUnknown || !e.CancelRequested || e.Retryable {
		t.Errorf("the running call ended with %+v", e)
	}
	// A call of this router ends without a message over NATS.
	w.answer = func(w *scripted, f *bus.CallFrame, to bus.ReplyTo) {
		_ = has.Cancel("call_here")
		w.l.Error(to, f.Seq, schema.Errorf(schema.KindCanceled, "cancelled"), true, 0)
	}
	if err := <-run("call_here"); !schema.AsError(err).CancelRequested {
		t.Errorf("the call here ended with %v", err)
	}
	if err := has.Cancel("call_of_nobody"); err != nil {
		t.Errorf("a call that nobody has: %v", err)
	}
	for i := range has.flights.shards {
		if n := len(has.flights.shards[i].calls); n != 0 {
			t.Errorf("%d calls are still known", n)
		}
	}
}

func TestCancellationDoesNotAffectLaterCalls(t *testing.T) {
	var fs flights
	for i := range 1000 {
		f := fs.add("id")
		if f.stopped() {
			t.Fatalf("call %d begins as cancelled", i)
		}
		if i%3 == 0 && !fs.cancel("id") {
			t.Fatal("not found")
		}
		if f.stopped() != (i%3 == 0) {
			t.Fatalf("call %d: stopped is %t", i, f.stopped())
		}
		fs.remove(f)
		if fs.cancel("id") {
			t.Fatal("found after its end")
		}
	}
}

func TestAWorkerIsAskedForTheOutcomesOfCalls(t *testing.T) {
	srv := bustest.Start(t)
	r := startRouter(t, srv)
	var ids []schema.CallID
	for i := range askedAtOnce + 10 {
		ids = append(ids, schema.CallID(fmt.Sprintf("call_%d", i)))
	}
	big := make([]byte, 3<<20) // sent in parts
	w, _ := startScripted(t, srv, r, "w", func(w *scripted, f *bus.CallFrame, to bus.ReplyTo) {
		var q bus.OutcomeQuery
		if err := json.Unmarshal(f.Payload, &q); err != nil || f.Method != bus.MethodOutcomes || q.Within != time.Minute {
			t.Errorf("asked %q %s: %v", f.Method, f.Payload, err)
		}
		var answer []byte
		for i, id := range q.CallIDs {
			outcome := bus.Outcome{CallID: id, State: bus.OutcomeNever}
			if i == 7 {
				outcome.State, outcome.Result = bus.OutcomeEnded, &schema.Result{Body: big, Worker: "w"}
			}
			answer = bus.AppendOutcome(answer, &outcome)
		}
		w.l.Result(to, f.Seq, &schema.Result{Body: answer})
	})
	outcomes, err := r.Ask(context.Background(), "w", ids, time.Minute)
	if err != nil || len(outcomes) != len(ids) {
		t.Fatalf("%d fates, %v", len(outcomes), err)
	}
	for i, f := range outcomes {
		want := OutcomeNever
		if i%askedAtOnce == 7 {
			want = OutcomeEnded
			if len(f.Result.Body) != len(big) {
				t.Errorf("a result of %d bytes", len(f.Result.Body))
			}
		}
		if f.CallID != ids[i] || f.State != want {
			t.Errorf("fate %d is %+v", i, f)
		}
	}
	if n := w.calls.Load(); n != 2 {
		t.Errorf("it took %d questions", n)
	}
	w.answer = func(w *scripted, f *bus.CallFrame, to bus.ReplyTo) { // an answer about fewer calls than requested
		w.l.Result(to, f.Seq, &schema.Result{Body: bus.AppendOutcome(nil, &bus.Outcome{CallID: "call_0", State: bus.OutcomeNever})})
	}
	if outcomes, err := r.Ask(context.Background(), "w", ids[:2], 0); err == nil {
		t.Errorf("half an answer was taken: %v", outcomes)
	}
	if outcomes, err := r.Ask(context.Background(), "gone", ids[:2], 0); schema.KindOf(err) != schema.KindUnavailable {
		t.Errorf("a worker that is not there: %v, %v", outcomes, err)
	}
	if outcomes, err := r.Ask(context.Background(), "w", nil, 0); err != nil || len(outcomes) != 0 {
		t.Errorf("about nothing: %v, %v", outcomes, err)
	}
	idle(t, r)
}

func TestCallsOfManyServersAreSpreadOverTheWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &Router{routes: make(map[schema.ServerID]*route), workers: make(map[schema.WorkerID]*worker), routers: 1}
		r.limits.fill()
		var servers []schema.Server
		for n := range 500 {
			servers = append(servers, schema.Server{ID: schema.ServerID(fmt.Sprint(n)), State: schema.StateInitialized, Slots: 64})
		}
		for _, id := range []schema.WorkerID{"a", "b", "c", "d"} {
			r.SetWorker(&schema.Worker{ID: id, Servers: servers})
		}
		got := map[schema.WorkerID]int{}
		for n := range 500 { // one call for each server, all concurrently
			l, err := r.lookup(schema.ServerID(fmt.Sprint(n))).acquire(t.Context(), one, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			l.host.Load().owed.add(1)
			got[l.worker]++
		}
		for id, n := range got {
			if n < 100 || n > 150 {
				t.Errorf("worker %s got %d of 500", id, n)
			}
		}
	})
}

func TestUnchangedAnnouncementReopensClosedWorker(t *testing.T) {
	r := &Router{routes: make(map[schema.ServerID]*route), workers: make(map[schema.WorkerID]*worker), routers: 1}
	r.limits.fill()
	w := &schema.Worker{ID: "w", Servers: []schema.Server{{ID: "s", State: schema.StateInitialized, Slots: 4}}}
	slots := func() int { return r.Load()["s"].Slots }
	r.SetWorker(w)
	r.lookup("s").closeLane("w")
	if slots() != 0 {
		t.Fatal("a closed worker has slots")
	}
	r.SetWorker(w)
	if slots() != 4 {
		t.Error("it is closed for ever")
	}
	more := *w
	more.Servers = []schema.Server{{ID: "s", State: schema.StateInitialized, Slots: 6}}
	r.SetWorker(&more)
	if slots() != 6 {
		t.Errorf("a change was taken for none: %d slots", slots())
	}
	drains := more
	drains.Draining = true
	r.SetWorker(&drains)
	if slots() != 0 {
		t.Error("a draining worker is open")
	}
}
