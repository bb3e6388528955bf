package worker

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/session"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

const (
	owner = bus.ReplyTo("owner.")
	heir  = bus.ReplyTo("heir.")
)

func ok(body string) session.Outcome {
	return session.Outcome{Body: []byte(body), Started: true, Took: time.Millisecond}
}

// ask returns the outcomes of the calls.
func ask(t *testing.T, m *memory, from bus.ReplyTo, within time.Duration, now time.Time, ids ...schema.CallID) []bus.Outcome {
	t.Helper()
	var outcomes []bus.Outcome
	if err := bus.ReadOutcomes(m.asked(&bus.OutcomeQuery{CallIDs: ids, Within: within}, from, now), func(f bus.Outcome) { outcomes = append(outcomes, f) }); err != nil {
		t.Fatal(err)
	}
	if len(outcomes) != len(ids) {
		t.Fatalf("asked about %d calls, told of %d", len(ids), len(outcomes))
	}
	return outcomes
}

func begin(t *testing.T, m *memory, id schema.CallID, from bus.ReplyTo, now time.Time) {
	t.Helper()
	if err := m.begin(id, 0, from, now); err != nil {
		t.Fatal(err)
	}
}

func run(t *testing.T, m *memory, id schema.CallID, from bus.ReplyTo, out session.Outcome, now time.Time) {
	t.Helper()
	begin(t, m, id, from, now)
	m.end(id, 0, from, out, now)
}

func TestAWorkerReportsTheOutcomeOfAnAttempt(t *testing.T) {
	now := time.Now()
	m := newMemory("w", now)
	begin(t, m, "running", owner, now)
	run(t, m, "ended", owner, session.Outcome{Body: []byte("{}"), ToolError: true, Started: true, Took: time.Second}, now)
	run(t, m, "failed", owner, session.Outcome{Err: schema.Errorf(schema.KindProtocol, "no"), Started: true}, now)
	run(t, m, "refused", owner, session.Outcome{Err: schema.Errorf(schema.KindUnavailable, "busy")}, now)
	got := ask(t, m, heir, 0, now, "new", "running", "ended", "failed", "refused")
	for i, want := range []bus.OutcomeState{bus.OutcomeNever, bus.OutcomeRunning, bus.OutcomeEnded, bus.OutcomeEnded, bus.OutcomeNever} {
		if got[i].State != want {
			t.Errorf("%s is %s, not %s", got[i].CallID, got[i].State, want)
		}
	}
	if r := got[2].Result; r == nil || string(r.Body) != "{}" || !r.ToolError || r.Worker != "w" || r.Took != time.Second || got[2].Err != nil {
		t.Errorf("ended: %+v", got[2])
	}
	if got[3].Result != nil || got[3].Err.Kind != schema.KindProtocol {
		t.Errorf("failed: %+v", got[3])
	}
	m.end("running", 0, owner, ok("late"), now)
	if f := ask(t, m, heir, 0, now, "running")[0]; f.State != bus.OutcomeEnded || string(f.Result.Body) != "late" {
		t.Errorf("when it has ended: %+v", f)
	}
}

func TestQueriedCallIsRefusedToItsOldOwner(t *testing.T) {
	now := time.Now()
	m := newMemory("w", now)
	run(t, m, "ended", owner, ok("{}"), now)
	for _, id := range []schema.CallID{"on its way", "ended"} {
		ask(t, m, heir, 0, now, id)
		if err := m.begin(id, 0, owner, now); err == nil || err.Kind != schema.KindConflict {
			t.Errorf("%s: the old owner got %v", id, err)
		}
		if err := m.begin(id, 0, heir, now); err != nil {
			t.Errorf("%s: the new owner got %v", id, err)
		}
	}
	if f := ask(t, m, "third.", 0, now, "on its way")[0]; f.State != bus.OutcomeRunning {
		t.Errorf("the new owner runs it: %+v", f)
	}
	if err := m.begin("on its way", 0, heir, now); err == nil {
		t.Error("the second owner was not told of the third")
	}
}

func TestTooLargeResultIsRememberedByItsDigest(t *testing.T) {
	now := time.Now()
	m := newMemory("w", now)
	out := ok("")
	out.Body, out.ToolError = make([]byte, keptOne+1), true
	run(t, m, "large", owner, out, now)
	f := ask(t, m, heir, 0, now, "large")[0]
	if f.State != bus.OutcomeEnded || f.Result == nil || f.Result.Body != nil || !f.Result.ToolError || f.Err == nil || f.Err.Kind != schema.KindResultTooLarge {
		t.Errorf("got %+v", f)
	}
	if m.size > keptOverhead {
		t.Errorf("it takes %d bytes", m.size)
	}
	run(t, m, "failed", owner, session.Outcome{Started: true, Err: &schema.Error{Kind: schema.KindProtocol, RPC: &schema.RPCError{Data: make([]byte, keptOne+1)}}}, now)
	if f := ask(t, m, heir, 0, now, "failed")[0]; f.Err == nil || f.Err.Kind != schema.KindProtocol || f.Err.RPC != nil || f.Result != nil {
		t.Errorf("an error that is too large: %+v", f)
	}
}

func TestARememberedOutcomeIsACopy(t *testing.T) {
	now := time.Now()
	m := newMemory("w", now)
	body := []byte("{}")
	run(t, m, "c", owner, session.Outcome{Body: body, Started: true}, now)
	copy(body, "??")
	if f := ask(t, m, heir, 0, now, "c")[0]; string(f.Result.Body) != "{}" {
		t.Errorf("remembered %q", f.Result.Body)
	}
}

func TestMemoryIsBoundedAndAForgottenCallIsUnknown(t *testing.T) {
	now := time.Now()
	m := newMemory("w", now)
	body := bytes.Repeat([]byte("x"), 64<<10)
	for i := range 1000 {
		run(t, m, schema.CallID(fmt.Sprint("large-", i)), owner, session.Outcome{Body: body, Started: true}, now)
	}
	if m.size > keptBytes || len(m.calls) != m.count {
		t.Errorf("%d bytes of %d calls are kept, and %d in all", m.size, m.count, len(m.calls))
	}
	for i := range keptCalls + 1000 {
		run(t, m, schema.CallID(fmt.Sprint("small-", i)), owner, ok(""), now)
	}
	if m.count > keptCalls {
		t.Errorf("%d calls are kept", m.count)
	}
	got := ask(t, m, heir, 0, now, "small-0", schema.CallID(fmt.Sprint("small-", keptCalls+999)))
	if got[0].State != bus.OutcomeForgotten || got[1].State != bus.OutcomeEnded {
		t.Errorf("the oldest is %s, the newest %s", got[0].State, got[1].State)
	}
	m.sweep(now.Add(keptFor + time.Second))
	if m.count != 0 || m.size != 0 || len(m.calls) != 0 || len(m.owners) != 0 {
		t.Errorf("after two minutes %d calls of %d bytes are kept", m.count, m.size)
	}
	if f := ask(t, m, heir, 0, now, schema.CallID(fmt.Sprint("small-", keptCalls+999)))[0]; f.State != bus.OutcomeForgotten {
		t.Errorf("what is too old is %s", f.State)
	}
}

func TestCallsOfALostRouterAreNotEvictedByLiveOnes(t *testing.T) {
	now := time.Now()
	m := newMemory("w", now)
	body := bytes.Repeat([]byte("x"), 1<<10)
	for i := range 1000 {
		run(t, m, schema.CallID(fmt.Sprint("lost-", i)), owner, session.Outcome{Body: body, Started: true}, now)
	}
	for i := range 100_000 {
		run(t, m, schema.CallID(fmt.Sprint("live-", i)), heir, session.Outcome{Body: body, Started: true}, now)
	}
	for i := range 1000 {
		if f := ask(t, m, heir, 0, now, schema.CallID(fmt.Sprint("lost-", i)))[0]; f.State != bus.OutcomeEnded {
			t.Fatalf("lost-%d is %s", i, f.State)
		}
	}
}

// TestOutcomeNeverIsReportedOnlyIfProven checks that a query must state how far back it reaches once ids
// have been dropped from the duplicate filter.
func TestOutcomeNeverIsReportedOnlyIfProven(t *testing.T) {
	now := time.Now()
	s := newDuplicateFilter(now)
	// Generations are filled without adding half a million ids to each.
	fill := func() {
		s.generations[len(s.generations)-1].n = generationIDs
		now = now.Add(time.Minute)
	}
	s.add("first", now)
	for range generationsKept - 1 {
		fill()
		s.add(schema.CallID(fmt.Sprint("at ", now)), now)
	}
	if !s.maybe("first") || s.maybe("new") || !s.covers(0, now) {
		t.Fatal("nothing was given up yet")
	}
	fill()
	s.add("last", now)
	if s.maybe("first") {
		t.Error("the oldest generation is still there")
	}
	if s.covers(0, now) {
		t.Error("something was given up, and any time is covered")
	}
	back := now.Sub(s.generations[0].from)
	if back < 6*time.Minute {
		t.Fatalf("it reaches back %s", back)
	}
	if !s.covers(back-coverSlack-time.Second, now) || s.covers(back-coverSlack, now) || s.covers(time.Hour, now) {
		t.Errorf("it reaches back %s and says otherwise", back)
	}
	m := newMemory("w", now)
	m.seen = s
	if f := ask(t, m, heir, 0, now, "first")[0]; f.State != bus.OutcomeForgotten {
		t.Errorf("first is %s", f.State)
	}
	if f := ask(t, m, heir, time.Minute, now, "new")[0]; f.State != bus.OutcomeNever {
		t.Errorf("new is %s", f.State)
	}
}

func TestDuplicateFilterHasNoFalseNegatives(t *testing.T) {
	now := time.Now()
	s := newDuplicateFilter(now)
	const n = 200_000
	for i := range n {
		s.add(schema.CallID(fmt.Sprint("seen-", i)), now)
	}
	wrong := 0
	for i := range n {
		if !s.maybe(schema.CallID(fmt.Sprint("seen-", i))) {
			t.Fatalf("seen-%d was not seen", i)
		}
		if s.maybe(schema.CallID(fmt.Sprint("new-", i))) {
			wrong++
		}
	}
	if wrong > n/1000 {
		t.Errorf("%d of %d new ids are taken for known ones", wrong, n)
	}
}

func BenchmarkMemory(b *testing.B) {
	m := newMemory("w", time.Now())
	body := bytes.Repeat([]byte("x"), 500)
	b.ReportAllocs()
	for b.Loop() {
		id := schema.NewCallID()
		now := time.Now()
		_ = m.begin(id, 0, owner, now)
		m.end(id, 0, owner, session.Outcome{Body: body, Started: true}, now)
	}
}

func TestAMessageThatArrivesAfterItWasReportedLostIsRefused(t *testing.T) {
	now := time.Now()
	m := newMemory("w", now)
	run(t, m, "ended", owner, ok("{}"), now)
	var got []bus.Outcome
	q := &bus.OutcomeQuery{CallIDs: []schema.CallID{"lost", "ended"}, Seqs: []uint64{7, 8}}
	if err := bus.ReadOutcomes(m.asked(q, owner, now), func(f bus.Outcome) { got = append(got, f) }); err != nil {
		t.Fatal(err)
	}
	if got[0].State != bus.OutcomeNever || !got[0].Refused || got[1].State != bus.OutcomeEnded || got[1].Refused {
		t.Fatalf("%+v", got)
	}
	if err := m.begin("lost", 7, owner, now); err == nil || err.Kind != schema.KindConflict {
		t.Errorf("the message that comes late got %v", err)
	}
	if err := m.begin("lost", 9, owner, now); err != nil {
		t.Errorf("the call, sent again, got %v", err)
	}
	if f := ask(t, m, owner, 0, now, "never said")[0]; f.Refused {
		t.Errorf("nobody named a message: %+v", f)
	}
}

func TestCallsWithoutALedgerEntryAreRememberedBriefly(t *testing.T) {
	now := time.Now()
	m := newBriefMemory("w", now)
	run(t, m, "plain", owner, ok("{}"), now)
	if f := ask(t, m, owner, 0, now.Add(briefFor), "plain")[0]; f.State != bus.OutcomeEnded {
		t.Errorf("within its time: %+v", f)
	}
	if f := ask(t, m, owner, 0, now.Add(briefFor+time.Millisecond), "plain")[0]; f.State != bus.OutcomeForgotten {
		t.Errorf("after it: %+v", f)
	}
	for i := range briefCalls + 10 {
		run(t, m, schema.CallID(fmt.Sprint("many ", i)), owner, ok("{}"), now)
	}
	if m.count > briefCalls {
		t.Errorf("%d calls are remembered", m.count)
	}
}

// Otherwise a front door whose reply was lost takes the question of a server for its final result.
func TestARememberedRequestForInputIsOne(t *testing.T) {
	now := time.Now()
	m := newBriefMemory("w", now)
	run(t, m, "asks", owner, session.Outcome{Body: []byte("{}"), Input: true, Started: true}, now)
	run(t, m, "ends", owner, ok("{}"), now)
	got := ask(t, m, owner, 0, now, "asks", "ends")
	if !got[0].Result.InputRequired || got[1].Result.InputRequired {
		t.Errorf("%+v, %+v", got[0].Result, got[1].Result)
	}
}
