package chaos

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/callyard/callyard/internal/batch"
	"github.com/callyard/callyard/internal/mcptest"
	"github.com/callyard/callyard/internal/store/journal"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

// journalWindow is how many calls of one journal may be under way at once.
const journalWindow = 512

// stored is what the journals hold of a call.
type stored struct {
	id     string
	states []string // in the order in which they were stored
}

func (s stored) state() string {
	if len(s.states) == 0 {
		return ""
	}
	return s.states[len(s.states)-1]
}

// judge compares what clients were told, what is stored, and what ran.
func (r *run) judge(ctx context.Context) error {
	once, err := r.ran(r.effects)
	if err != nil {
		return err
	}
	safe, err := mcptest.ReadEffects(r.safeEffects)
	if err != nil {
		return err
	}
	journals, err := r.settledJournals(ctx)
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
		r.judgeCall(t, once, safe, journals)
	}
	for effect, n := range once {
		if n > 1 {
			rep.Duplicates += n - 1
			b.find("%s ran %d times", effect, n)
		}
	}
	for effect := range journals {
		rep.InJournals += len(journals[effect])
	}
	for _, s := range rep.Scars {
		rep.UnknownMost += s.Singles + min(s.InFlight-s.Singles, journalWindow) + s.Begun
	}
	if n := rep.States["unknown"] - rep.CancelUnknown; n > rep.UnknownMost {
		b.find("%d calls are unknown, and only %d were under way when faults struck", n, rep.UnknownMost)
	}
	if n := rep.States["succeeded"]; len(r.plan) == 0 && n != rep.Calls {
		b.find("no fault struck, and only %d of %d calls succeeded", n, rep.Calls)
	}
	if c := rep.Cancel; c != nil {
		now, err := mcptest.ReadEffects(r.effects + "-canceled")
		if err != nil {
			return err
		}
		if c.Ran = len(now); c.Ran != c.ended {
			b.find("%d calls of the canceled batch ran after its end", c.Ran-c.ended)
		}
	} else if r.c.CancelCalls > 0 {
		b.find("the batch that was to be canceled did not come to its end")
	}
	rep.Findings = b.findings
	return nil
}

// ran reads the effects of what may run once.
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

// judgeCall looks at one call from all three sides.
func (r *run) judgeCall(t *told, once, safe map[string]int, journals map[string][]stored) {
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
	r.judgeStored(t, journals[t.Effect])
}

// judgeStored compares what the client was told with what is stored.
func (r *run) judgeStored(t *told, rows []stored) {
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
			// A request whose answer was lost, repeated elsewhere: the key says which
			// of the two counts, and the other is canceled.
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
		find("%s was accepted as %s, which is in no journal", t.Effect, t.ID)
	}
}

// twinsWithin is how long calls of which no client knows may take to end: the request
// was repeated elsewhere, and the front door that stored it has to find that out, or
// another one when its lease has ended.
const twinsWithin = time.Minute

// settledJournals reads what is stored until every call has a result, or the time
// for that has ended.
func (r *run) settledJournals(ctx context.Context) (map[string][]stored, error) {
	for began := time.Now(); ; {
		all, err := r.journals(ctx)
		if err != nil || r.c.wants() || time.Since(began) > twinsWithin {
			return all, err
		}
		open := 0
		for _, rows := range all {
			for _, s := range rows {
				if len(s.states) == 0 {
					open++
				}
			}
		}
		if open == 0 {
			return all, nil
		}
		r.c.Log.Info("waiting for calls that no client waits for", "campaign", r.c.Name, "calls", open)
		if !rest(ctx, time.Second) {
			return nil, ctx.Err()
		}
	}
}

// journals reads every durable call that is stored, by its effect. A cluster that has
// just come together again has no leader for some streams yet: it tries for 3 minutes.
func (r *run) journals(ctx context.Context) (map[string][]stored, error) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	for {
		found, err := r.readJournals(ctx)
		if err == nil {
			return found, nil
		}
		r.c.Log.Info("the journals cannot be read yet", "campaign", r.c.Name, "error", err)
		if !rest(ctx, time.Second) {
			return nil, err
		}
	}
}

// readJournals is journals, once.
func (r *run) readJournals(ctx context.Context) (map[string][]stored, error) {
	log := slog.New(slog.DiscardHandler)
	var conn *bus.Conn
	node := r.f.nodes[0]
	err := node.host.inside(func() (err error) {
		conn, err = bus.Connect(ctx, bus.Options{URL: "nats://" + node.at, Name: "chaos", Log: log})
		return err
	})
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	s, err := journal.Open(ctx, conn, journal.Options{Log: log, MaxEnded: 1 << 20})
	if err != nil {
		return nil, fmt.Errorf("opening the journals: %w", err)
	}
	defer s.Close()
	raw, err := journal.OpenLogs(ctx, conn, journal.Options{})
	if err != nil {
		return nil, fmt.Errorf("opening the logs of the journals: %w", err)
	}
	found, ids := map[string][]stored{}, batch.NewIDs(s.Secret())
	for cursor := ""; ; {
		page, next := s.List(journal.Filter{Limit: 1000}, cursor)
		for _, m := range page {
			if err := readJournal(ctx, raw, ids, m, found); err != nil {
				return nil, fmt.Errorf("reading journal %s: %w", m.ID, err)
			}
		}
		if cursor = next; cursor == "" {
			return found, nil
		}
	}
}

// readJournal adds the calls of a journal and their results.
func readJournal(ctx context.Context, raw *journal.Logs, ids *batch.IDs, m *journal.Manifest, found map[string][]stored) error {
	id := m.ID
	states := map[uint64][]string{}
	err := readLog(ctx, raw, string(id), journal.LogResults, func(data []byte) error {
		_, err := journal.ReadResults(data, func(r *journal.ResultRecord) {
			states[r.Index] = append(states[r.Index], string(batch.StateOf(r.Outcome)))
		})
		return err
	})
	if err != nil {
		return err
	}
	var wrong error
	err = readLog(ctx, raw, string(id), journal.LogCalls, func(data []byte) error {
		_, err := journal.ReadCalls(data, func(c *journal.CallRecord) {
			var a struct {
				ID string `json:"id"`
			}
			if err := json.Unmarshal(c.Arguments, &a); err != nil {
				wrong = fmt.Errorf("reading the arguments of call %d: %w", c.Index, err)
			}
			who := cmp.Or(c.Principal.Name, m.Principal.Name)
			found[a.ID] = append(found[a.ID], stored{string(ids.CallID(id, c.Index, who)), states[c.Index]})
		})
		return err
	})
	return errors.Join(err, wrong)
}

// readLog reads one log of a journal in large pieces.
func readLog(ctx context.Context, raw *journal.Logs, id string, log journal.Log, each func([]byte) error) error {
	const most, mostBytes = 1000, 4 << 20
	for from := uint64(1); ; {
		page, err := raw.Read(ctx, schema.BatchID(id), log, from, most, mostBytes)
		if err != nil || len(page) == 0 {
			return err
		}
		for _, m := range page {
			if err := each(m.Data); err != nil {
				return err
			}
		}
		from = page[len(page)-1].Sequence + 1
	}
}
