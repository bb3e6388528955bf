package records

import (
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/schema"
)

// TestTailReportsChangesOfItsMessages tells of a call in two messages, the later state
// first, as two front doors may.
func TestTailReportsChangesOfItsMessages(t *testing.T) {
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
	hour := at.Unix() / 3600
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

// message packs records of one slot.
func message(writer string, records ...Record) []byte {
	p := newPacker(writer, nil)
	for i := range records {
		k, _ := keyOf(string(records[i].ID))
		p.add(k, &records[i])
	}
	return p.message()
}

// storeBySlot stores records, a message for each slot. Some of these are torn.
func storeBySlot(t *testing.T, r *Recorder, rnd *rand.Rand, records []Record) {
	t.Helper()
	slots := map[int64][]Record{}
	for _, rec := range records {
		k, _ := keyOf(string(rec.ID))
		slots[k.slot()] = append(slots[k.slot()], rec)
	}
	for _, slot := range slices.Sorted(maps.Keys(slots)) {
		data := message("fd", slots[slot]...)
		if rnd.IntN(20) == 0 {
			data = data[:1]
		}
		if err := r.store.append(t.Context(), slot, data); err != nil {
			t.Fatal(err)
		}
	}
}

// TestTailsOfAnySizeReportEachCallOnce reads a log of a few slots, with torn messages in it,
// by tails of random sizes. What each of them tells follows what was told before, and in the
// end all of it is what a list shows.
func TestTailsOfAnySizeReportEachCallOnce(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	conn := bustest.Start(t).Connect(t, "one")
	r := open(t, conn, Options{FrontDoor: "fd"})
	start := time.Now().Truncate(time.Minute)
	var all []Record
	const messages = 400
	ready := make([][]Record, messages) // what is still to be stored
	for range 4000 {
		at := start.Add(time.Duration(rnd.IntN(30)) * time.Second)
		rec := Record{ID: schema.CallID(idAt(at, rnd)), Principal: "ann", Server: "files", State: schema.StateRunning, Admitted: at.UnixNano(), Changed: at.UnixNano(), Attempt: 1}
		end := rec
		end.State, end.Ended, end.Changed = schema.StateSucceeded, at.UnixNano()+5, at.UnixNano()+5
		last := rnd.IntN(messages)
		ready[last] = append(ready[last], end)
		if rnd.IntN(2) == 0 {
			first := rnd.IntN(last + 1) // maybe in the same message
			ready[first] = append(ready[first], rec)
		}
		all = append(all, end)
	}
	told := map[schema.CallID]Record{}
	for at := uint64(0); ; {
		for range min(1+rnd.IntN(20), len(ready)) {
			storeBySlot(t, r, rnd, ready[0])
			ready = ready[1:]
		}
		log, err := r.State(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if at == log.Last {
			break // and nothing is ready
		}
		if rnd.IntN(10) == 0 {
			r = open(t, conn, Options{}) // without an index
		}
		tail, err := r.tail(t.Context(), at, 1+rnd.IntN(60))
		if err != nil || tail.Until == at {
			t.Fatal(tail, err)
		}
		if rnd.IntN(5) == 0 {
			readAllPages(t, r, Filter{}, 1000) // has all of it in the index
		}
		for _, hour := range tail.Hours() {
			once := map[schema.CallID]bool{}
			if err := r.Changes(t.Context(), tail, hour, at, time.Time{}, func(before, after *Record) {
				was, known := told[after.ID]
				if known != (before != nil) || known && *before != was || once[after.ID] {
					t.Errorf("before: %+v, and told was %+v", before, was)
				}
				once[after.ID], told[after.ID] = true, *after
			}); err != nil {
				t.Fatal(err)
			}
		}
		at = tail.Until
		for _, x := range r.indexes.slots {
			for i, p := range x.parts {
				if i > 0 && p.sequence <= x.parts[i-1].sequence {
					t.Fatalf("the index has message %d after %d", p.sequence, x.parts[i-1].sequence)
				}
			}
		}
	}
	listed := map[schema.CallID]Record{}
	for _, rec := range readAllPages(t, r, Filter{}, 1000) {
		listed[rec.ID] = rec
	}
	if diff := cmp.Diff(listed, told); diff != "" || len(told) < len(all)*8/10 {
		t.Errorf("%d calls of %d, - is listed, + was told:\n%.2000s", len(told), len(all), diff)
	}
}

// TestDeletedIndexedMessagesAreLookedUpOnce deletes messages before a tail that the index
// knows: they are looked for once, as a replica may be behind.
func TestDeletedIndexedMessagesAreLookedUpOnce(t *testing.T) {
	for name, erased := range map[string]uint64{"as many as follow": 2, "more than follow": indexFrom - 1} {
		t.Run(name, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(5, 6))
			r := open(t, bustest.Start(t).Connect(t, "one"), Options{FrontDoor: "fd"})
			at := time.Now().Truncate(time.Minute)
			first, call, last := idAt(at, rnd), idAt(at.Add(time.Second), rnd), idAt(at.Add(2*time.Second), rnd)
			k, _ := keyOf(first)
			store := func(state schema.State, ids ...string) {
				var records []Record
				for _, id := range ids {
					records = append(records, Record{ID: schema.CallID(id), State: state, Admitted: at.UnixNano(), Attempt: 1})
				}
				if err := r.store.append(t.Context(), k.slot(), message("fd", records...)); err != nil {
					t.Fatal(err)
				}
			}
			changes := func(after, counted uint64) (told []changed, err error) {
				tail, err := r.Tail(t.Context(), after)
				if err != nil {
					return nil, err
				}
				err = r.Changes(t.Context(), tail, tail.Hours()[0], counted, time.Time{}, func(before, after *Record) { told = append(told, changed{before, new(*after)}) })
				return told, err
			}
			for range indexFrom {
				store(schema.StateSucceeded, first, last)
			}
			if told, err := changes(0, 0); len(told) != 2 || err != nil {
				t.Fatal(told, err)
			}
			for sequence := indexFrom - erased + 1; sequence <= indexFrom; sequence++ {
				if err := r.store.s.Erase(t.Context(), sequence); err != nil {
					t.Fatal(err)
				}
			}
			store(schema.StateRunning, call)
			store(schema.StateSucceeded, call)
			if _, err := changes(indexFrom, indexFrom+1); errors.Is(err, errBehind) != (erased > 2) {
				t.Errorf("missing messages: %v", err)
			}
			told, err := changes(indexFrom, indexFrom+1)
			if err != nil || len(told) != 1 || told[0].before == nil || told[0].before.State != schema.StateRunning || told[0].after.State != schema.StateSucceeded {
				t.Errorf("once they are known to be missing: %+v told, %v", told, err)
			}
		})
	}
}
