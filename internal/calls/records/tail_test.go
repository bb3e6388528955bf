package records

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/schema"
)

// TestATailTellsWhatItsMessagesChanged tells of a call in two messages, the later state
// first, as two front doors may.
func TestATailTellsWhatItsMessagesChanged(t *testing.T) {
	r := open(t, bustest.Start(t).Connect(t, "one"), Options{FrontDoor: "fd"})
	at := time.Now()
	id := schema.CallID(idAt(at, rand.New(rand.NewPCG(1, 2))))
	end := Record{ID: id, State: schema.StateSucceeded, Admitted: at.UnixNano(), Changed: at.UnixNano() + 5, Attempt: 1}
	begin := Record{ID: id, Principal: "ann", Tenant: "billing", Server: "files", State: schema.StateHeld, Admitted: at.UnixNano(), Changed: at.UnixNano(), Attempt: 1}
	for _, rec := range []*Record{&end, &begin} {
		r.Add(rec)
		if err := r.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	end.FrontDoor = "fd"
	both := end
	both.Principal, both.Tenant, both.Server = "ann", "billing", "files"
	hour, ok := HourOf(id)
	if !ok {
		t.Fatal("it has no hour")
	}
	for after, want := range map[uint64]changed{0: {nil, &both}, 1: {&end, &both}} {
		for range 2 { // the slot is read as a whole, and then by its index
			tail, err := r.Tail(t.Context(), after)
			if err != nil || tail.Until != 2 || len(tail.Hours()) != 1 || tail.Hours()[0] != hour {
				t.Fatalf("%+v %v", tail, err)
			}
			called := 0
			if err := r.Changes(t.Context(), tail, hour, after, time.Time{}, func(before, now *Record) {
				called++
				if diff := cmp.Diff(want, changed{before, now}, cmp.AllowUnexported(changed{})); diff != "" {
					t.Errorf("after %d:\n%s", after, diff)
				}
			}); err != nil || called != 1 {
				t.Fatalf("%d calls, %v", called, err)
			}
			if err := r.Changes(t.Context(), tail, hour, 2, time.Time{}, func(_, now *Record) { t.Errorf("%+v was counted", now) }); err != nil {
				t.Fatal(err)
			}
		}
	}
	tail, err := r.Tail(t.Context(), 2)
	if err != nil || tail.Until != 2 || len(tail.Hours()) != 0 {
		t.Errorf("%+v %v", tail, err)
	}
}
