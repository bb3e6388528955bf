package worker

import (
	"testing"
	"time"

	"github.com/callyard/callyard/internal/session"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

// askLost asks about a call that was sent as the message seq.
func askLost(t *testing.T, m *memory, from bus.ReplyTo, id schema.CallID, seq uint64, now time.Time) (got bus.Outcome) {
	t.Helper()
	q := &bus.OutcomeQuery{CallIDs: []schema.CallID{id}, Seqs: []uint64{seq}}
	if err := bus.ReadOutcomes(m.asked(q, from, now), func(f bus.Outcome) { got = f }); err != nil {
		t.Fatal(err)
	}
	return got
}

// A NATS server that is stopped for minutes delivers its messages when it continues.
func TestAMessageThatArrivesMinutesAfterItWasReportedLostIsRefused(t *testing.T) {
	now := time.Now()
	for name, m := range map[string]*memory{"ledger": newMemory("w", now), "brief": newBriefMemory("w", now)} {
		if f := askLost(t, m, owner, "lost", 7, now); f.State != bus.OutcomeNever || !f.Refused {
			t.Fatalf("%s: %+v", name, f)
		}
		if f := askLost(t, m, owner, "lost", 8, now); !f.Refused { // it was sent again, and lost again
			t.Fatalf("%s: %+v", name, f)
		}
		if err := m.begin("lost", 9, owner, now); err != nil {
			t.Fatalf("%s: the call, sent again, got %v", name, err)
		}
		m.end("lost", 9, owner, ok("{}"), now)
		later := now.Add(20 * time.Minute)
		m.sweep(later)
		for _, seq := range []uint64{7, 8} {
			if err := m.begin("lost", seq, owner, later); err == nil || err.Kind != schema.KindConflict {
				t.Errorf("%s: message %d, which comes late, got %v", name, seq, err)
			}
		}
		m.sweep(now.Add(lostFor + time.Second))
		if n := len(m.lost.numbers) + len(m.lost.order); n != 0 {
			t.Errorf("%s: %d messages are kept after their time", name, n)
		}
	}
}

func TestAMessageIsNotReportedLostWithoutSpaceToRefuseIt(t *testing.T) {
	now := time.Now()
	m := newMemory("w", now)
	for i := range uint64(maxLost) {
		if !m.lost.add(i+1, now) {
			t.Fatalf("%d messages are too many", i+1)
		}
	}
	if f := askLost(t, m, owner, "lost", maxLost+1, now); f.State != bus.OutcomeForgotten || f.Refused {
		t.Errorf("%+v", f)
	}
	if f := askLost(t, m, owner, "again", 1, now); f.State != bus.OutcomeNever || !f.Refused {
		t.Errorf("%+v", f)
	}
}

// A router that only lost its connection asks about its own messages. That does not make it the owner of
// calls that another one took over, nor keep the next owner from sending them.
func TestAskingAboutLostMessagesTakesNoCallOver(t *testing.T) {
	now := time.Now()
	m := newMemory("w", now)
	askLost(t, m, owner, "c", 7, now)
	if err := m.begin("c", 8, heir, now); err != nil {
		t.Errorf("the next owner got %v", err)
	}
	ask(t, m, heir, 0, now, "taken over")
	askLost(t, m, owner, "taken over", 9, now)
	if err := m.begin("taken over", 10, owner, now); err == nil || err.Kind != schema.KindConflict {
		t.Errorf("the former owner got %v", err)
	}
	if err := m.begin("taken over", 11, heir, now); err != nil {
		t.Errorf("the new owner got %v", err)
	}
}

// The answer is sent before the outcome is recorded, so the router may have sent the call again.
func TestARefusedMessageDoesNotHideThatTheCallRuns(t *testing.T) {
	now := time.Now()
	m := newMemory("w", now)
	if err := m.begin("c", 1, owner, now); err != nil {
		t.Fatal(err)
	}
	if err := m.begin("c", 2, owner, now); err != nil { // sent again after the refusal
		t.Fatal(err)
	}
	m.end("c", 1, owner, session.Outcome{Err: schema.Errorf(schema.KindUnavailable, "busy")}, now)
	if f := ask(t, m, owner, 0, now, "c")[0]; f.State != bus.OutcomeRunning {
		t.Errorf("while it runs it is %s", f.State)
	}
	m.end("c", 2, owner, ok("{}"), now)
	if f := ask(t, m, owner, 0, now, "c")[0]; f.State != bus.OutcomeEnded {
		t.Errorf("when it has ended it is %s", f.State)
	}
}
