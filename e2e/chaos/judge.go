package chaos

import (
	"context"

	"github.com/callyard/callyard/internal/mcptest"
)

// batchWindow limits the calls of one batch in flight.
const batchWindow = 512

// judge compares the answers to clients, the stored calls and the runs.
func (r *run) judge(ctx context.Context) error {
	once, err := r.ran(r.effects)
	if err != nil {
		return err
	}
	safe, err := mcptest.ReadEffects(r.safeEffects)
	if err != nil {
		return err
	}
	now, err := r.settled(ctx)
	if err != nil {
		return err
	}
	b, rep := r.book, r.report
	b.mu.Lock()
	calls := b.calls
	rep.Scars, rep.Points, rep.Odd, rep.Peak = b.scars, b.points, b.odd, b.peak
	b.mu.Unlock()
	rep.States = map[string]int{}
	for _, t := range calls {
		r.judgeCall(t, once, safe, now.calls)
	}
	for effect, n := range once {
		if n > 1 {
			rep.Duplicates += n - 1
			b.find("%s ran %d times", effect, n)
		}
	}
	for _, rows := range now.calls {
		rep.Stored += len(rows)
	}
	for batch, n := range now.open {
		rep.Lost += n
		b.find("batch %s has %d stored calls without a result", batch, n)
	}
	for _, s := range rep.Scars {
		rep.UnknownMost += s.Singles + min(s.InFlight-s.Singles, batchWindow) + s.Begun
	}
	if n := rep.States["unknown"] - rep.CancelUnknown; n > rep.UnknownMost {
		b.find("%d calls are unknown, and only %d were under way when faults struck", n, rep.UnknownMost)
	}
	if n := rep.States["succeeded"]; len(r.plan) == 0 && n != rep.Calls {
		b.find("no fault struck, and only %d of %d calls succeeded", n, rep.Calls)
	}
	if c := rep.Cancel; c != nil {
		ran, err := mcptest.ReadEffects(r.effects + "-canceled")
		if err != nil {
			return err
		}
		if c.Ran = len(ran); c.Ran != c.ended {
			b.find("%d calls of the canceled batch ran after its end", c.Ran-c.ended)
		}
	} else if r.c.CancelCalls > 0 {
		b.find("the batch that was to be canceled did not come to its end")
	}
	rep.Findings = b.findings
	return nil
}

// ran reads the recorded effects of the calls that may run once.
func (r *run) ran(file string) (map[string]int, error) {
	effects, err := mcptest.ReadEffects(file)
	if err != nil {
		return nil, err
	}
	canceled, err := mcptest.ReadEffects(file + "-canceled")
	for effect, n := range canceled {
		effects[effect] += n
	}
	return effects, err
}

// judgeCall compares all three records of one call.
func (r *run) judgeCall(t *clientCall, once, safe map[string]int, stands map[string][]stored) {
	rep, find := r.report, r.book.find
	if !t.Extra {
		if t.ID != "" {
			rep.Accepted++
		}
		if t.State != "" {
			rep.Ended++
			rep.States[t.State]++
		}
	}
	switch {
	case t.Lost:
		rep.Lost++
		find("%s was accepted as %s, and then nobody knew it", t.Effect, t.ID)
		return
	case t.State == "":
		find("%s (accepted as %q) has no end", t.Effect, t.ID)
		if t.ID == "" {
			return
		}
	case t.Results != 1:
		find("%s has %d results", t.Effect, t.Results)
	}
	ran := once[t.Effect]
	if t.Safe {
		ran = safe[t.Effect]
	}
	if t.Canceled {
		rep.CancelAsked++
		switch {
		case t.State == "unknown":
			rep.CancelUnknown++
		case t.State == "canceled":
			rep.CancelNeverRan++
		}
	}
	switch t.State {
	case "succeeded":
		if ran == 0 {
			find("%s succeeded as %s, and has no effect", t.Effect, t.ID)
		}
	case "unknown":
		if t.Safe && !t.Canceled {
			find("%s is safe to repeat, and unknown", t.Effect)
		}
	case "", "running":
	default:
		if ran > 0 && (!t.Safe || t.State == "canceled") {
			find("%s is said to be %s, and ran", t.Effect, t.State)
		}
	}
	r.judgeStored(t, stands[t.Effect])
}

// judgeStored compares the answer to the client with the stored calls.
func (r *run) judgeStored(t *clientCall, rows []stored) {
	find := r.book.find
	known := false
	for _, s := range rows {
		if len(s.states) == 0 {
			r.report.Lost++
			find("%s is stored as %s, and has no result", t.Effect, s.id)
		}
		if len(s.states) > 1 && s.states[0] != "unknown" {
			find("%s has the results %v", s.id, s.states)
		}
		if s.id != t.ID {
			// A request whose answer was lost was repeated at another front door. The key decides which
			// of the two applies, and the other one is canceled.
			if r.report.Twins++; s.state() != "canceled" {
				find("%s is stored as %s (%v) beside %s", t.Effect, s.id, s.states, t.ID)
			}
			continue
		}
		known = true
		if t.State != "" && t.State != "unknown" && s.state() != t.State {
			find("%s was told to be %s, and is stored as %v", t.ID, t.State, s.states)
		}
	}
	if !known {
		r.report.Lost++
		find("%s was accepted as %s, which is not stored", t.Effect, t.ID)
	}
}
