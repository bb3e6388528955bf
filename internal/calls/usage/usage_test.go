package usage

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/callyard/callyard/internal/calls/records"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/schema"
)

// TestCountsEqualRecordsThroughCounterStops records calls of some hours at three front doors, in any
// order, while counters are stopped at random moments.
func TestCountsEqualRecordsThroughCounterStops(t *testing.T) {
	const deaths = 50
	rnd := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 23))
	s := bustest.Start(t)
	alive := func(id string) bool { return id != "fd2" }
	var doors [3]*records.Recorder
	for i := range doors {
		doors[i] = recorder(t, s.Connect(t, fmt.Sprint("door ", i)), records.Options{FrontDoor: fmt.Sprint("fd", i), Alive: alive})
	}
	conns := []*bus.Conn{s.Connect(t, "counter 1"), s.Connect(t, "counter 2")}
	now := time.Now()
	var waiting [][]records.Record
	for death := range deaths {
		for range 40 {
			waiting = append(waiting, life(rnd, now.Add(-time.Duration(rnd.Int64N(int64(3*time.Hour))))))
		}
		for range 60 { // the next record of some call, possibly an old one
			i := rnd.IntN(len(waiting))
			if len(waiting[i]) > 0 {
				rec := waiting[i][0]
				waiting[i] = waiting[i][1:]
				doors[rnd.IntN(len(doors))].Add(&rec)
			}
		}
		for _, d := range doors {
			if err := d.Sync(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		var both sync.WaitGroup
		for _, c := range conns { // concurrently, which no lease prevents
			u := counter(t, c, Options{Records: doors[0]})
			within := time.Duration(rnd.Int64N(int64(30 * time.Millisecond)))
			both.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), within)
				defer cancel()
				_, _ = u.Count(ctx) // it dies
			})
		}
		both.Wait()
		if death%10 != 9 {
			continue
		}
		if diff := cmp.Diff(inLog(t, doors[1]), reported(t, counter(t, conns[0], Options{Records: doors[1]}))); diff != "" {
			t.Fatalf("after %d deaths (-log +counted):\n%s", 2*(death+1), diff)
		}
	}
}

func TestACallOfAFrontDoorThatStoppedIsUnknown(t *testing.T) {
	s := bustest.Start(t)
	gone := false
	r := recorder(t, s.Connect(t, "door"), records.Options{FrontDoor: "fd", Alive: func(string) bool { return !gone }})
	u := counter(t, s.Connect(t, "counter"), Options{Records: r})
	id := schema.NewCallID()
	c := r.Begin(&records.Record{ID: id, Principal: "ann", Server: "files", Tool: "read"})
	total := func() Counts {
		report, err := u.Report(t.Context(), Query{})
		if err != nil {
			t.Fatal(err)
		}
		return report.Total
	}
	if got := total(); got != (Counts{Calls: 1, Unfinished: 1}) {
		t.Errorf("it runs: %+v", got)
	}
	gone = true
	if got := total(); got != (Counts{Calls: 1, Unknown: 1}) {
		t.Errorf("its front door is gone: %+v", got)
	}
	c.End(records.Outcome{Result: &schema.Result{Body: []byte("{}"), Took: time.Millisecond}}) // it was not
	if got := total(); got != (Counts{Calls: 1, Succeeded: 1, Micros: 1000, Out: 2}) {
		t.Errorf("it has ended: %+v", got)
	}
}

func TestUnfinishedDurableCallCountsOnlyWhileItsFrontDoorOwnsAJournal(t *testing.T) {
	s := bustest.Start(t)
	owners := map[string]bool{"fd": true}
	r := recorder(t, s.Connect(t, "door"), records.Options{
		FrontDoor: "fd", Alive: func(string) bool { return true }, Owners: func() map[string]bool { return owners },
		Owner: func(schema.CallID) (string, bool) { return "fd", false },
	})
	u := counter(t, s.Connect(t, "counter"), Options{Records: r})
	r.Begin(&records.Record{ID: schema.NewCallID(), Known: "call_known", Durable: true, Principal: "ann", Server: "files", Tool: "read"})
	for _, want := range []Counts{{Calls: 1, Unfinished: 1}, {}} {
		report, err := u.Report(t.Context(), Query{})
		if err != nil {
			t.Fatal(err)
		}
		if report.Total != want {
			t.Errorf("the owners are %v: %+v", owners, report.Total)
		}
		owners = map[string]bool{"next": true} // which may not be known to be alive yet
	}
}

func TestAMessageThatIsStoredTwiceCountsOnce(t *testing.T) {
	s := bustest.Start(t)
	r := recorder(t, s.Connect(t, "door"), records.Options{})
	u := counter(t, s.Connect(t, "counter"), Options{Records: r})
	js := bustest.JetStream(t, s.URL)
	rec := life(rand.New(rand.NewPCG(1, 1)), time.Now())[0]
	r.Add(&rec)
	want := reported(t, u)
	stream, err := js.Stream(t.Context(), bus.StreamExecutions)
	if err != nil {
		t.Fatal(err)
	}
	m, err := stream.GetMsg(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.Publish(t.Context(), m.Subject, m.Data); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, reported(t, u)); diff != "" || len(want) != 1 {
		t.Errorf("%v\n%s", want, diff)
	}
}

// TestCountsRemainWhenTheLogIsDeleted counts calls, drops their records, and then recreates the log.
func TestCountsRemainWhenTheLogIsDeleted(t *testing.T) {
	s := bustest.Start(t)
	conn := s.Connect(t, "door")
	r := recorder(t, conn, records.Options{})
	u := counter(t, s.Connect(t, "counter"), Options{Records: r})
	js := bustest.JetStream(t, s.URL)
	now := time.Now()
	tell := func(rec records.Record) {
		t.Helper()
		r.Add(&rec)
		if err := r.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	total := func() Counts {
		t.Helper()
		counted(t, u)
		report, err := u.Report(t.Context(), Query{})
		if err != nil || !report.Complete {
			t.Fatalf("%+v %v", report, err)
		}
		return report.Total
	}
	rnd := rand.New(rand.NewPCG(1, 1))
	old := records.Record{ID: idAt(now.Add(-time.Minute), rnd), Principal: "ann", State: schema.StateHeld}
	tell(old)
	total()
	stream, err := js.Stream(t.Context(), bus.StreamExecutions)
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Purge(t.Context()); err != nil {
		t.Fatal(err)
	}
	tell(records.Record{ID: schema.NewCallID(), Principal: "bob", State: schema.StateSucceeded})
	old.State = schema.StateSucceeded
	tell(old) // no record shows any more that it was counted
	if got := total(); got.Calls != 2 || got.Succeeded != 1 || got.Unfinished != 1 {
		t.Errorf("after the records were dropped: %+v", got)
	}
	if err := js.DeleteStream(t.Context(), bus.StreamExecutions); err != nil {
		t.Fatal(err)
	}
	again := recorder(t, s.Connect(t, "again"), records.Options{})
	u = counter(t, s.Connect(t, "counter again"), Options{Records: again})
	r = again
	tell(records.Record{ID: schema.NewCallID(), Principal: "bob", State: schema.StateSucceeded})
	if got := total(); got.Calls != 3 || got.Succeeded != 2 {
		t.Errorf("after the log was made again: %+v", got)
	}
}

func TestOnlyTheLeaderCounts(t *testing.T) {
	s := bustest.Start(t)
	r := recorder(t, s.Connect(t, "door"), records.Options{})
	rec := life(rand.New(rand.NewPCG(1, 1)), time.Now())[0]
	r.Add(&rec)
	if err := r.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	counted := make(chan string, 2)
	for name, lead := range map[string]bool{"leads": true, "follows": false} {
		counter(t, s.Connect(t, name), Options{
			Records: r, Lead: func() bool { return lead }, Every: 10 * time.Millisecond,
			Counted: func(schema.TenantID, schema.ServerID, Counts) { counted <- name },
		})
	}
	if got := <-counted; got != "leads" {
		t.Errorf("%s counted", got)
	}
}
