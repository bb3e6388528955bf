package records

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/schema"
)

// model is a store of call records in memory.
type model struct {
	rows map[string]*Record
	dead map[string]bool
}

func (m *model) tell(r Record) {
	if was := m.rows[string(r.ID)]; was != nil {
		m.rows[string(r.ID)] = merge(was, &r)
	} else {
		m.rows[string(r.ID)] = &r
	}
}

func (m *model) list(f Filter) (all []Record) {
	for _, r := range m.rows {
		seen := *r
		if !seen.Durable && (seen.State == schema.StateRunning || seen.State == schema.StateQueued) && m.dead[seen.FrontDoor] {
			seen.State = schema.StateUnknown
		}
		k, _ := keyOf(string(seen.ID))
		at := time.UnixMilli(k.milli())
		if f.matches(&seen) && (f.From.IsZero() || !at.Before(f.From)) && (f.To.IsZero() || at.Before(f.To)) {
			all = append(all, seen)
		}
	}
	slices.SortFunc(all, func(a, b Record) int { return cmp.Compare(b.ID, a.ID) })
	return all
}

func TestFiltersAndCursorsMatchAModel(t *testing.T) {
	for seed := range uint64(2) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { checkModel(t, rand.New(rand.NewPCG(seed, 7))) })
	}
}

func checkModel(t *testing.T, rnd *rand.Rand) {
	s := bustest.Start(t)
	dead := map[string]bool{"fd0": true}
	alive := func(id string) bool { return !dead[id] }
	doors := make([]*Recorder, 3)
	for i := range doors {
		doors[i] = open(t, s.Connect(t, fmt.Sprint(i)), Options{FrontDoor: fmt.Sprint("fd", i), Alive: alive})
	}
	m := &model{rows: map[string]*Record{}, dead: dead}
	// Some calls of one moment, some of the last hours, some of days ago.
	now := time.Now().Truncate(time.Second)
	pick := func(list ...string) string { return list[rnd.IntN(len(list))] }
	batch := idAt(now.Add(-80*time.Hour), rnd)
	batch = "batch" + batch[4:]
	ids := []string{}
	for range 1000 {
		at := now.Add(-time.Duration(rnd.Int64N(int64(3 * time.Second))))
		switch rnd.IntN(20) {
		case 0:
			at = now.Add(-time.Duration(rnd.Int64N(int64(72 * time.Hour))))
		case 1, 2, 3, 4, 5, 6:
			at = now.Add(-time.Duration(rnd.Int64N(16)) * 7 * time.Minute)
		}
		id := idAt(at, rnd)
		ids = append(ids, id)
		door := rnd.IntN(len(doors))
		rec := Record{
			ID: schema.CallID(id), FrontDoor: fmt.Sprint("fd", door), Principal: pick("ann", "bob", "eve"), Server: schema.ServerID(pick("files", "bank")), Tool: pick("read", "write"),
			Durable: rnd.IntN(2) == 0, Admitted: at.UnixNano(), Changed: at.UnixNano(), State: pick3(rnd, schema.StateRunning, schema.StateQueued, schema.StateHeld),
		}
		if rec.Principal == "eve" {
			rec.Tenant = "red"
		}
		if rnd.IntN(4) == 0 {
			rec.Batch, rec.Index, rec.CustomID = schema.BatchID(batch), rnd.Int64N(100), "c"+id
		}
		tell := func() { doors[door].Add(&rec); m.tell(rec) }
		tell()
		for range rnd.IntN(3) {
			rec.Changed += 1 + rnd.Int64N(1000)
			if rec.Durable && rnd.IntN(2) == 0 {
				door = rnd.IntN(len(doors)) // another one took over
				rec.FrontDoor = fmt.Sprint("fd", door)
			}
			switch rnd.IntN(3) {
			case 0:
				rec.State, rec.Attempt = schema.StateRunning, rec.Attempt+1
			case 1:
				rec.State = pick3(rnd, schema.StateSucceeded, schema.StateFailed, schema.StateCanceled)
				rec.Ended = rec.Changed
				tell()
				if !rec.Durable {
					goto next
				}
			default:
				// Only what changed is told.
				part := Record{ID: schema.CallID(id), FrontDoor: rec.FrontDoor, State: schema.StateExpired, Attempt: rec.Attempt, Admitted: rec.Admitted, Changed: rec.Changed, Durable: rec.Durable}
				doors[door].Add(&part)
				m.tell(part)
				if !rec.Durable {
					goto next
				}
			}
			tell()
		}
	next:
		if rnd.IntN(50) == 0 {
			if err := doors[rnd.IntN(len(doors))].Sync(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, d := range doors {
		if err := d.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	reader := doors[1]
	for i := range 25 {
		var f Filter
		f.tenants = []schema.Tenants{schema.AllTenants(), schema.OnlyTenant("red"), schema.OnlyTenant(schema.DefaultTenant), schema.OnlyTenant("blue")}[rnd.IntN(4)]
		if rnd.IntN(2) == 0 {
			f.Principals = slices.Compact([]string{pick("ann", "bob"), "eve"})
		}
		if rnd.IntN(3) == 0 {
			f.Server = schema.ServerID(pick("files", "bank", "none"))
		}
		if rnd.IntN(3) == 0 {
			f.Tool = pick("read", "write")
		}
		if rnd.IntN(4) == 0 {
			f.Batch = schema.BatchID(batch)
		}
		for range rnd.IntN(3) {
			all := states()
			f.States = append(f.States, all[rnd.IntN(len(all))])
		}
		if rnd.IntN(3) == 0 {
			f.From = now.Add(-time.Duration(rnd.Int64N(int64(4 * time.Hour)))).Truncate(time.Millisecond)
		}
		if rnd.IntN(3) == 0 {
			f.To = now.Add(-time.Duration(rnd.Int64N(int64(2 * time.Hour)))).Truncate(time.Millisecond)
		}
		want := m.list(f)
		for j := range want {
			want[j].Error, want[j].Detail = "", ""
		}
		got := readAllPages(t, reader, f, 1+rnd.IntN(200))
		for j := range got {
			got[j].Error, got[j].Detail = "", ""
		}
		if diff := gocmp.Diff(want, got); diff != "" {
			t.Fatalf("filter %d %+v: %d, want %d\n%s", i, f, len(got), len(want), diff)
		}
	}
	sought, want := []schema.CallID{schema.NewCallID(), "42"}, map[schema.CallID]*Record{} // nothing is known of the first two
	for range 100 {
		id := ids[rnd.IntN(len(ids))]
		rec := *m.rows[id]
		reader.resolve(&rec)
		got, err := reader.Get(t.Context(), schema.AllTenants(), schema.CallID(id))
		if err != nil {
			t.Fatal(err)
		}
		if diff := gocmp.Diff(&rec, got); diff != "" {
			t.Fatalf("%s:\n%s", id, diff)
		}
		sought, want[schema.CallID(id)] = append(sought, schema.CallID(id)), &rec
	}
	found, err := reader.Find(t.Context(), schema.AllTenants(), sought...)
	if diff := gocmp.Diff(want, found); err != nil || diff != "" {
		t.Fatalf("all at once: %v\n%s", err, diff)
	}
}

func pick3(rnd *rand.Rand, a, b, c schema.State) schema.State {
	return [...]schema.State{a, b, c}[rnd.IntN(3)]
}

func TestASlotWithMoreCallsThanAReaderHoldsIsReadInParts(t *testing.T) {
	r := open(t, bustest.Start(t).Connect(t, "one"), Options{})
	rnd := rand.New(rand.NewPCG(3, 4))
	const calls = 3*atOnce + 17
	at := time.Now().Truncate(10 * time.Second)
	want := map[schema.CallID]int{}
	var failed, ids []schema.CallID
	for i := range calls {
		id := schema.CallID(idAt(at.Add(time.Duration(i%2000)*time.Millisecond), rnd))
		rec := Record{ID: id, State: schema.StateRunning, Server: "s"}
		r.Add(&rec)
		if rec.State = schema.StateSucceeded; i%1000 == 5 {
			rec.State = schema.StateFailed
			failed = append(failed, id)
		}
		r.Add(&rec)
		ids = append(ids, id)
		want[id] = 1
	}
	for _, limit := range []int{300, mostPage} {
		seen := map[schema.CallID]int{}
		for _, rec := range readAllPages(t, r, Filter{}, limit) {
			seen[rec.ID]++
			if !rec.State.Ended() {
				t.Fatalf("%s is listed as %s", rec.ID, rec.State)
			}
		}
		if diff := gocmp.Diff(want, seen); diff != "" {
			t.Fatalf("limit %d: %d of %d", limit, len(seen), calls)
		}
	}
	listed := func(f Filter) (got []schema.CallID) {
		for _, rec := range readAllPages(t, r, f, 7) {
			got = append(got, rec.ID)
		}
		slices.Sort(got)
		return got
	}
	slices.Sort(failed)
	if diff := gocmp.Diff(failed, listed(Filter{States: []schema.State{schema.StateFailed}})); diff != "" {
		t.Errorf("the failed ones:\n%s", diff)
	}
	if got := listed(Filter{States: []schema.State{schema.StateRunning}}); len(got) != 0 {
		t.Errorf("%d are listed as running", len(got))
	}
	slices.Sort(ids)
	if got := listed(Filter{Server: "other"}); len(got) != 0 {
		t.Errorf("%d are of another server", len(got))
	}
}

func TestPageWithoutMatchesEndsWithACursor(t *testing.T) {
	r := open(t, bustest.Start(t).Connect(t, "one"), Options{})
	rnd := rand.New(rand.NewPCG(5, 6))
	now := time.Now()
	// A slot for each message that a page may read, and some more.
	for i := range pageMessages + 50 {
		r.Add(&Record{ID: schema.CallID(idAt(now.Add(-time.Duration(i)*10*time.Second), rnd)), State: schema.StateSucceeded, Tool: "busy"})
	}
	old := idAt(now.Add(-(pageMessages+100)*10*time.Second), rnd)
	r.Add(&Record{ID: schema.CallID(old), State: schema.StateSucceeded, Tool: "rare"})
	page, next, err := r.List(t.Context(), schema.AllTenants(), Filter{Tool: "rare"}, "", 10)
	if err != nil || len(page) != 0 || next == "" {
		t.Fatalf("%d calls, next %q, %v", len(page), next, err)
	}
	page, next, err = r.List(t.Context(), schema.AllTenants(), Filter{Tool: "rare"}, next, 10)
	if err != nil || len(page) != 1 || page[0].ID != schema.CallID(old) || next != "" {
		t.Errorf("%v, next %q, %v", page, next, err)
	}
}

func TestListRefusesInvalidCursorsAndStates(t *testing.T) {
	r := open(t, bustest.Start(t).Connect(t, "one"), Options{})
	for _, cursor := range []string{"x", strings.Repeat("u", 26), strings.Repeat("0", 27)} {
		if _, _, err := r.List(t.Context(), schema.AllTenants(), Filter{}, cursor, 0); schema.KindOf(err) != schema.KindInvalidRequest {
			t.Errorf("cursor %q: %v", cursor, err)
		}
	}
	if _, _, err := r.List(t.Context(), schema.AllTenants(), Filter{States: []schema.State{"gone"}}, "", 0); schema.KindOf(err) != schema.KindInvalidRequest {
		t.Errorf("state: %v", err)
	}
	if page, next, err := r.List(t.Context(), schema.AllTenants(), Filter{}, "", 0); err != nil || len(page) != 0 || next != "" {
		t.Errorf("an empty log: %v %q %v", page, next, err)
	}
	// A message that nobody can read hides no other.
	id := schema.NewCallID()
	k, _ := keyOf(string(id))
	if err := r.store.append(t.Context(), k.slot(), []byte("garbage")); err != nil {
		t.Fatal(err)
	}
	r.Add(&Record{ID: id, State: schema.StateHeld})
	if page, _, err := r.List(t.Context(), schema.AllTenants(), Filter{}, "", 0); err != nil || len(page) != 1 || page[0].ID != id {
		t.Errorf("%v %v", page, err)
	}
}

// TestAReadOfNoTenantReturnsNothing reads with the zero value, and as other tenants.
func TestAReadOfNoTenantReturnsNothing(t *testing.T) {
	r := open(t, bustest.Start(t).Connect(t, "one"), Options{})
	id := schema.NewCallID()
	r.Add(&Record{ID: id, State: schema.StateFailed, Principal: "ann", Tenant: "red"})
	for _, c := range []struct {
		of   schema.Tenants
		sees bool
	}{{schema.Tenants{}, false}, {schema.OnlyTenant("blue"), false}, {schema.OnlyTenant(""), false}, {schema.OnlyTenant("red"), true}, {schema.AllTenants(), true}} {
		_, err := r.Get(t.Context(), c.of, id)
		page, _, listErr := r.List(t.Context(), c.of, Filter{}, "", 0)
		each := 0
		eachErr := r.Each(t.Context(), c.of, Filter{}, func(*Record) bool { each++; return true })
		if listErr != nil || eachErr != nil || (err == nil) != c.sees || (len(page) == 1) != c.sees || (each == 1) != c.sees {
			t.Errorf("%+v: %v, %d (%v), %d (%v)", c.of, err, len(page), listErr, each, eachErr)
		}
	}
}
