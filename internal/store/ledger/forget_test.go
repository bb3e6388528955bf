package ledger

import (
	"bytes"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/schema"
)

func openFor(t *testing.T, s *bustest.Server, name string) *Ledger {
	t.Helper()
	l, err := Open(t.Context(), s.Connect(t, name), Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}

// holds stores an approval with arguments of that size.
func (l *Ledger) holds(t *testing.T, size int) *Approval {
	t.Helper()
	a := &Approval{CallID: schema.NewCallID(), Binding: Binding{Requester: Requester{Name: "ann"}}, Expires: time.Now().Add(time.Hour)}
	if _, err := l.Create(t.Context(), a, bytes.Repeat([]byte("x"), size)); err != nil {
		t.Fatal(err)
	}
	return a
}

// keeps waits until exactly these approvals have arguments outside the ledger.
func (l *Ledger) keeps(t *testing.T, what string, want ...schema.ApprovalID) {
	t.Helper()
	slices.Sort(want)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	var got []schema.ApprovalID
	for until := time.Now().Add(time.Minute); time.Now().Before(until); <-tick.C {
		var err error
		if got, err = l.store.heldIDs(t.Context()); err != nil {
			t.Fatal(err)
		}
		if slices.Sort(got); slices.Equal(got, want) {
			return
		}
	}
	t.Fatalf("%s: kept are the arguments of %v, want %v", what, got, want)
}

func (l *Ledger) becomes(t *testing.T, id schema.ApprovalID, states ...State) {
	t.Helper()
	for _, s := range states {
		if _, err := l.Change(t.Context(), schema.DefaultTenant, id, func(a *Approval) error {
			if a.State = s; s == Running {
				a.Runner = &Runner{FrontDoor: "fd-1", Started: time.Now()}
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestLargeArgumentsAreForgottenWhenTheirCallHasEnded(t *testing.T) {
	s := bustest.Start(t)
	l, other := openFor(t, s, "a"), openFor(t, s, "b")
	const large = 3 << 20
	small, waits := l.holds(t, smallArguments), l.holds(t, smallArguments+1)
	l.keeps(t, "at the beginning", waits.ID)
	for _, states := range [][]State{{Denied}, {Expired}, {Canceled}, {Approved, Revoked}, {Approved, Running, Succeeded}, {Running, Failed}, {Running, Unknown}} {
		a := l.holds(t, large)
		if got, err := other.Arguments(t.Context(), schema.DefaultTenant, a.ID); err != nil || len(got) != large {
			t.Fatalf("another process reads %d bytes, %v", len(got), err)
		}
		other.becomes(t, a.ID, states...)
		l.keeps(t, fmt.Sprint(states), waits.ID)
		if got, err := other.Arguments(t.Context(), schema.DefaultTenant, a.ID); schema.KindOf(err) != schema.KindNotFound {
			t.Errorf("%v: %d bytes are read, %v", states, len(got), err)
		}
	}
	l.becomes(t, small.ID, Denied)
	if got, err := other.Arguments(t.Context(), schema.DefaultTenant, small.ID); err != nil || len(got) != smallArguments {
		t.Errorf("small ones are kept with the record: %d bytes, %v", len(got), err)
	}
}

func TestLargeEditedArgumentsAreForgottenToo(t *testing.T) {
	l := openFor(t, bustest.Start(t), "a")
	a := l.holds(t, 100)
	edited := bytes.Repeat([]byte("y"), smallArguments+1)
	sum, err := l.PutEdited(t.Context(), schema.DefaultTenant, a.ID, edited)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Change(t.Context(), schema.DefaultTenant, a.ID, func(a *Approval) error {
		a.Edited = &Edited{By: "ben", ArgumentsDigest: sum, Size: int64(len(edited)), At: time.Now()}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if got, err := l.Arguments(t.Context(), schema.DefaultTenant, a.ID); err != nil || !bytes.Equal(got, edited) {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
	l.becomes(t, a.ID, Denied)
	l.keeps(t, "after the end")
	if got, err := l.Asked(t.Context(), schema.DefaultTenant, a.ID); err != nil || len(got) != 100 {
		t.Errorf("small ones that were asked for: %d bytes, %v", len(got), err)
	}
}

func TestSweepDeletesLeftoversOfAKilledProcess(t *testing.T) {
	s := bustest.Start(t)
	l := openFor(t, s, "a")
	waits, ended := l.holds(t, smallArguments+1), l.holds(t, smallArguments+1)
	l.becomes(t, ended.ID, Denied)
	l.keeps(t, "at the beginning", waits.ID)
	// A process that is killed between the end and the purge, and one that is killed
	// between the arguments and the record.
	never := IDFor(schema.NewCallID())
	for _, id := range []schema.ApprovalID{ended.ID, never} {
		large := bytes.Repeat([]byte("x"), smallArguments+1)
		if err := l.store.putParts(t.Context(), "", placeOf(len(large)), id, kindArguments, schema.Digest(large), large); err != nil {
			t.Fatal(err)
		}
	}
	f := &forgetter{l: l, missing: map[schema.ApprovalID]bool{}}
	for _, want := range [][]schema.ApprovalID{{waits.ID, never}, {waits.ID}} {
		if err := f.sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		l.keeps(t, "after a sweep", want...)
	}
}

func TestWatchOneReportsOnlyItsApproval(t *testing.T) {
	l := openFor(t, bustest.Start(t), "a")
	mine, other := l.holds(t, 10), l.holds(t, 10)
	heard := make(chan State, 10)
	stop := l.WatchOne(schema.AllTenants(), mine.ID, func(a *Approval) {
		if a.ID != mine.ID {
			t.Errorf("it heard of %s", a.ID)
		}
		heard <- a.State
	})
	others := make(chan State, 10)
	defer l.WatchOne(schema.AllTenants(), other.ID, func(a *Approval) { others <- a.State })()
	l.becomes(t, mine.ID, Approved)
	for s := range heard { // of the opening it may hear too
		if s == Approved {
			break
		}
	}
	stop()
	l.becomes(t, mine.ID, Revoked)
	l.becomes(t, other.ID, Denied)
	for s := range others {
		if s == Denied {
			break
		}
	}
	if left := len(l.view.watchers.Of(string(mine.ID))) + len(l.view.watchers.Of(string(other.ID))); len(heard) > 0 || left != 1 {
		t.Errorf("after its end it heard %s; %d are watched", <-heard, left)
	}
}
