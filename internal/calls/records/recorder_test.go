package records

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/callyard/callyard/internal/embedded"
	"github.com/callyard/callyard/internal/kit/logtest"
	"github.com/callyard/callyard/internal/kit/polltest"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/bus/porttest"
	"github.com/callyard/callyard/pkg/schema"
)

func TestEveryCallOfManyCallersIsFound(t *testing.T) {
	const callers, calls = 8, 12_500
	s := bustest.Start(t)
	r := open(t, s.Connect(t, "one"), Options{Queue: 1 << 20})
	ids := make([][]schema.CallID, callers)
	var wg sync.WaitGroup
	for n := range callers {
		wg.Go(func() {
			for i := range calls {
				id := schema.NewCallID()
				ids[n] = append(ids[n], id)
				rec := Record{ID: id, Principal: fmt.Sprint("p", n), Server: "s", Tool: "t"}
				if i%2 == 0 {
					r.BeginWith(&rec, []byte(id), true).End(Outcome{Result: &schema.Result{Body: []byte("{}"), Worker: "w", Took: time.Microsecond}})
				} else {
					rec.State = schema.StateQueued
					r.Add(&rec)
				}
			}
		})
	}
	wg.Wait()
	if err := r.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := r.Stats(); got.Written != callers*calls || got.Lost != 0 || got.Waiting != 0 {
		t.Errorf("%+v", got)
	}
	seen := map[schema.CallID]*Record{}
	for _, rec := range readAllPages(t, r, Filter{}, mostPage) {
		if seen[rec.ID] != nil {
			t.Fatalf("%s is listed twice", rec.ID)
		}
		seen[rec.ID] = &rec
	}
	other := open(t, s.Connect(t, "two"), Options{}) // another front door sees the same
	for n := range ids {
		for i, id := range ids[n] {
			rec := seen[id]
			if rec == nil {
				t.Fatalf("%s is not listed", id)
			}
			if want := []schema.State{schema.StateSucceeded, schema.StateQueued}[i%2]; rec.State != want || rec.Principal != fmt.Sprint("p", n) || i%2 == 0 && rec.Arguments != DigestOf([]byte(id)) {
				t.Fatalf("call %d: %+v", i, rec)
			}
			if i%500 == 0 {
				got, err := other.Get(t.Context(), schema.AllTenants(), id)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(rec, got); diff != "" {
					t.Fatalf("listed and got differ:\n%s", diff)
				}
			}
		}
	}
	if len(seen) != callers*calls {
		t.Errorf("%d are listed", len(seen))
	}
}

func TestACallThatRunsForLongIsWrittenBeforeItEnds(t *testing.T) {
	s := bustest.Start(t)
	one, other := open(t, s.Connect(t, "one"), Options{}), open(t, s.Connect(t, "two"), Options{})
	id := schema.NewCallID()
	c := one.Begin(&Record{ID: id, Tool: "slow", Admitted: time.Now().Add(-runningAfter).UnixNano()})
	polltest.Until(t, "another front door sees that it runs", func() bool {
		rec, err := other.Get(t.Context(), schema.AllTenants(), id)
		return err == nil && rec.State == schema.StateRunning && rec.Tool == "slow"
	})
	c.End(Outcome{Result: &schema.Result{Took: time.Second}})
	if rec, err := one.Get(t.Context(), schema.AllTenants(), id); err != nil || rec.State != schema.StateSucceeded || rec.Started == 0 || rec.Attempt != 1 {
		t.Errorf("%+v %v", rec, err)
	}
}

func TestCallIsVisibleAtItsFrontDoorAtOnce(t *testing.T) {
	r := open(t, bustest.Start(t).Connect(t, "one"), Options{})
	id := schema.NewCallID()
	c := r.Begin(&Record{ID: id})
	if rec, err := r.Get(t.Context(), schema.AllTenants(), id); err != nil || rec.State != schema.StateRunning {
		t.Fatalf("%+v %v", rec, err)
	}
	c.End(Outcome{Err: schema.Errorf(schema.KindForbidden, "The policy says no.")})
	c.End(Outcome{Result: &schema.Result{}}) // comes too late
	rec, err := r.Get(t.Context(), schema.AllTenants(), id)
	if err != nil || rec.State != schema.StateDenied || rec.Error != schema.KindForbidden || rec.Detail != "The policy says no." || rec.Attempt != 0 {
		t.Errorf("%+v %v", rec, err)
	}
	if _, err := r.Get(t.Context(), schema.AllTenants(), schema.NewCallID()); schema.KindOf(err) != schema.KindNotFound {
		t.Errorf("a call that was not: %v", err)
	}
	if _, err := r.Get(t.Context(), schema.AllTenants(), "42"); schema.KindOf(err) != schema.KindNotFound {
		t.Errorf("no id: %v", err)
	}
}

func TestCallsOfALostFrontDoorEndUnknown(t *testing.T) {
	s := bustest.Start(t)
	gone := open(t, s.Connect(t, "one"), Options{FrontDoor: "gone"})
	here := open(t, s.Connect(t, "two"), Options{FrontDoor: "here", Alive: func(id string) bool { return id == "here" }})
	plain, durable, ended, mine := schema.NewCallID(), schema.NewCallID(), schema.NewCallID(), schema.NewCallID()
	gone.Begin(&Record{ID: plain})
	gone.Add(&Record{ID: durable, State: schema.StateRunning, Durable: true})
	gone.Begin(&Record{ID: ended}).End(Outcome{Result: &schema.Result{}})
	here.Begin(&Record{ID: mine})
	gone.Close() // its call had no end
	for id, want := range map[schema.CallID]schema.State{plain: schema.StateUnknown, durable: schema.StateRunning, ended: schema.StateSucceeded, mine: schema.StateRunning} {
		if rec, err := here.Get(t.Context(), schema.AllTenants(), id); err != nil || rec.State != want {
			t.Errorf("want %s: %+v %v", want, rec, err)
		}
	}
	for state, want := range map[schema.State][]schema.CallID{schema.StateUnknown: {plain}, schema.StateRunning: {mine, durable}, schema.StateSucceeded: {ended}} {
		var got []schema.CallID
		for _, rec := range readAllPages(t, here, Filter{States: []schema.State{state}}, 10) {
			got = append(got, rec.ID)
		}
		if len(got) != len(want) {
			t.Errorf("%s: %v, want %v", state, got, want)
		}
	}
}

func TestDurableCallIsListedOnceFromTheOwnerOfItsJournal(t *testing.T) {
	s := bustest.Start(t)
	owner, ended, alive := "first", false, map[string]bool{"first": true, "next": true}
	first := open(t, s.Connect(t, "one"), Options{FrontDoor: "first"})
	next := open(t, s.Connect(t, "two"), Options{
		FrontDoor: "next", Alive: func(id string) bool { return alive[id] }, Owner: func(schema.CallID) (string, bool) { return owner, ended },
	})
	var of []*Call
	for _, r := range []*Recorder{first, next} { // each owner has a record id of its own
		of = append(of, r.Begin(&Record{ID: schema.NewCallID(), Known: "call_known", Durable: true}))
		if err := r.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	lists := func(want ...string) {
		t.Helper()
		got := []string{}
		for _, rec := range readAllPages(t, next, Filter{}, 10) {
			got = append(got, rec.FrontDoor+" "+string(rec.State))
		}
		if !slices.Equal(got, want) {
			t.Errorf("the owner is %q (journal ended: %t): %q, want %q", owner, ended, got, want)
		}
	}
	lists("first running")
	alive["first"] = false // nobody took over yet
	lists("first running")
	owner, alive["first"] = "next", true // it may be alive
	lists("next running")
	ended = true // the end of the call is not stored yet
	lists("next running")
	of[1].End(Outcome{Result: &schema.Result{}})
	owner, ended = "", false // the journal is no longer known
	lists("next succeeded")
}

func TestDroppedRecordIsNotListed(t *testing.T) {
	s := bustest.Start(t)
	r, other := open(t, s.Connect(t, "one"), Options{FrontDoor: "first"}), open(t, s.Connect(t, "two"), Options{FrontDoor: "other"})
	rec := Record{ID: schema.NewCallID(), Known: "call_known", Durable: true, Attempt: 1}
	r.Begin(&rec).End(Outcome{State: schema.StateQueued})
	if err := r.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := readAllPages(t, other, Filter{}, 10); len(got) != 1 || got[0].State != schema.StateQueued {
		t.Errorf("an attempt failed, and the call waits: %+v", got)
	}
	rec.State, rec.Dropped = schema.StateRunning, true
	r.Add(&rec)
	if err := r.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := readAllPages(t, other, Filter{}, 10); len(got) != 0 {
		t.Errorf("it has another record: %+v", got)
	}
}

func TestRecordsWaitWhileNATSIsAway(t *testing.T) {
	address, dir, log := porttest.Address(t), t.TempDir(), slog.New(slog.DiscardHandler)
	up := func() *embedded.Server {
		s, err := embedded.Start(embedded.Options{Dir: dir, Listen: address, Log: log})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := up()
	conn, err := bus.Connect(t.Context(), bus.Options{URL: "nats://" + address, Name: "one", Log: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	const space = 800
	var said logtest.Log
	r := open(t, conn, Options{Queue: space, Log: slog.New(slog.NewTextHandler(&said, nil))})
	before := schema.NewCallID()
	r.Add(&Record{ID: before})
	if err := r.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	polltest.Until(t, "the connection is known to be lost", func() bool { return conn.Ready() != nil })
	told := map[schema.CallID]bool{before: true}
	for range 4 * space {
		id := schema.NewCallID()
		told[id] = true
		r.Add(&Record{ID: id, State: schema.StateHeld})
	}
	short, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if err := r.Sync(short); schema.KindOf(err) != schema.KindUnavailable {
		t.Errorf("while NATS is down: %v", err)
	}
	if _, _, err := r.List(short, schema.AllTenants(), Filter{}, "", 0); schema.KindOf(err) != schema.KindUnavailable {
		t.Errorf("while NATS is down: %v", err)
	}
	waited := r.Stats()
	if waited.Lost == 0 || waited.Waiting > space*5/4 {
		t.Errorf("the memory has no bound: %+v", waited)
	}
	s = up()
	defer func() { _ = s.Close() }()
	polltest.Until(t, "what waited is stored", func() bool { return r.Sync(t.Context()) == nil })
	got := readAllPages(t, r, Filter{}, 100)
	for _, rec := range got {
		if !told[rec.ID] {
			t.Errorf("nobody told of %s", rec.ID)
		}
		delete(told, rec.ID)
	}
	if stats := r.Stats(); len(told) != int(stats.Lost) || stats.Written != uint64(len(got)) {
		t.Errorf("%d are missing, %d are listed: %+v", len(told), len(got), stats)
	}
	if r.Close(); !strings.Contains(said.String(), "call records were dropped") {
		t.Errorf("it is not said that records were lost: %q", said.String())
	}
}

func TestEndOfAStoredCallHasReservedSpace(t *testing.T) {
	r := &Recorder{most: 4}
	sh := &r.shards[0]
	for range 10 {
		r.addLocked(sh, &Call{}, false)
	}
	if len(sh.waiting) != 4 || r.lost.Load() != 6 {
		t.Fatalf("%d wait, %d are lost", len(sh.waiting), r.lost.Load())
	}
	r.addLocked(sh, &Call{}, true)
	r.addLocked(sh, &Call{}, true)
	if len(sh.waiting) != 5 || r.lost.Load() != 7 {
		t.Errorf("%d wait, %d are lost", len(sh.waiting), r.lost.Load())
	}
}

func TestCloseStoresWaitingRecords(t *testing.T) {
	s := bustest.Start(t)
	r := open(t, s.Connect(t, "one"), Options{})
	var last schema.CallID
	for range 3000 {
		last = schema.NewCallID()
		r.Add(&Record{ID: last, State: schema.StateExpired})
	}
	r.Close()
	r.Close()
	r.Add(&Record{ID: schema.NewCallID()})
	if got := r.Stats(); got.Written != 3000 || got.Lost != 1 || got.Waiting != 0 {
		t.Errorf("%+v", got)
	}
	if err := r.Sync(t.Context()); err != nil {
		t.Errorf("a sync after the close: %v", err)
	}
	if rec, err := open(t, s.Connect(t, "two"), Options{}).Get(t.Context(), schema.AllTenants(), last); err != nil || rec.State != schema.StateExpired {
		t.Errorf("%+v %v", rec, err)
	}
}

func TestLargeArgumentsAreHashedOffTheCallPath(t *testing.T) {
	r := open(t, bustest.Start(t).Connect(t, "one"), Options{})
	large := bytes.Repeat([]byte("x"), hashBytes+1)
	kept, left := schema.NewCallID(), schema.NewCallID()
	r.BeginWith(&Record{ID: kept}, large, true).End(Outcome{Result: &schema.Result{}})
	r.BeginWith(&Record{ID: left}, large, false).End(Outcome{Result: &schema.Result{}})
	for id, want := range map[schema.CallID]Digest{kept: DigestOf(large), left: {}} {
		if rec, err := r.Get(t.Context(), schema.AllTenants(), id); err != nil || rec.Arguments != want || rec.ArgumentBytes != int64(len(large)) {
			t.Errorf("%+v %v", rec, err)
		}
	}
	if n := r.kept.Load(); n != 0 {
		t.Errorf("%d bytes are still kept", n)
	}
	huge := make([]byte, keptBytes+1)
	if r.keep(huge) != nil || r.kept.Load() != 0 {
		t.Error("more is kept than there is room for")
	}
}

func TestCallWithForeignIDIsCountedAsLost(t *testing.T) {
	r := open(t, bustest.Start(t).Connect(t, "one"), Options{})
	r.Begin(&Record{ID: "x"}).End(Outcome{Result: &schema.Result{}})
	r.Add(&Record{})
	if err := r.Sync(t.Context()); err != nil || r.Stats().Lost != 2 {
		t.Errorf("%v %+v", err, r.Stats())
	}
}

func TestAnIdleRecorderSleeps(t *testing.T) {
	r := open(t, bustest.Start(t).Connect(t, "one"), Options{})
	for range 3 {
		polltest.Until(t, "it sleeps", r.asleep.Load)
		written := r.Stats().Written
		r.Add(&Record{ID: schema.NewCallID()})
		polltest.Until(t, "it is woken and stores", func() bool { return r.Stats().Written > written })
	}
}
