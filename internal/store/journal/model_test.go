package journal_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/callyard/callyard/internal/store/journal"
	"github.com/callyard/callyard/pkg/schema"
)

// model is what a journal should be.
type model struct {
	calls   []string // custom ids
	stand   map[uint64]journal.EffectiveOutcome
	intents map[uint64]journal.OpenIntent // of earlier owners
	mine    map[uint64]journal.OpenIntent
	tool    uint64
	epoch   uint64
}

func (m *model) counts() journal.Counts {
	c := journal.Counts{ToolErrors: m.tool}
	for _, s := range m.stand {
		switch s.Outcome {
		case journal.Succeeded:
			c.Succeeded++
		case journal.Failed:
			c.Failed++
		case journal.Denied:
			c.Denied++
		case journal.Expired:
			c.Expired++
		case journal.Canceled:
			c.Canceled++
		case journal.Unknown:
			c.Unknown++
		case journal.Dead:
			c.Dead++
		}
	}
	return c
}

func (m *model) result(r *journal.ResultRecord) {
	now, counts := journal.Judge(m.stand[r.Index], r.Mark())
	if !counts {
		return
	}
	m.stand[r.Index] = now
	if now.Outcome == journal.Succeeded && r.ToolError {
		m.tool++
	}
	delete(m.intents, r.Index)
	delete(m.mine, r.Index)
}

// takeover: what the new owner finds open.
func (m *model) takeover() {
	maps.Copy(m.intents, m.mine)
	m.mine = map[uint64]journal.OpenIntent{}
	m.epoch++
}

func TestJournalMatchesTheModel(t *testing.T) {
	for seed := range uint64(3) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { runModel(t, rand.New(rand.NewPCG(seed, 7))) })
	}
}

func runModel(t *testing.T, rng *rand.Rand) {
	s, ctx := start(t), t.Context()
	id, w := begin(t, s)
	other, ow := begin(t, s) // noise in the same streams
	oo := claim(t, s, other)
	defer func() { ow.Close() }()
	m := &model{stand: map[uint64]journal.EffectiveOutcome{}, intents: map[uint64]journal.OpenIntent{}, mine: map[uint64]journal.OpenIntent{}, epoch: 1}
	o, err := s.Claim(ctx, schema.DefaultTenant, id, "fd")
	ok(t, err)
	defer func() { o.Close() }()
	defer func() { w.Close() }()
	outcomes := []journal.Outcome{journal.Succeeded, journal.Succeeded, journal.Failed, journal.Unknown, journal.Unknown, journal.Dead, journal.Canceled, journal.Expired, journal.Denied}
	for range 300 {
		n := uint64(len(m.calls))
		var at uint64
		if n > 0 {
			at = rng.Uint64N(n)
		}
		switch op := rng.IntN(12); {
		case op < 2 || n == 0: // accept
			k := 1 + rng.IntN(40)
			cs := calls(int(n), k)
			first, err := w.Append(ctx, cs)
			ok(t, err)
			if first != n {
				t.Fatalf("first %d of %d", first, n)
			}
			for i := range cs {
				m.calls = append(m.calls, cs[i].CustomID)
			}
			_, err = ow.Append(ctx, calls(0, 1))
			ok(t, err)
			ok(t, oo.Results(ctx, done(rng.IntN(100))))
		case op < 4: // read
			cs, err := o.Read(ctx, at, 1+rng.IntN(30))
			ok(t, err)
			for i, c := range cs {
				if c.Index != at+uint64(i) || c.CustomID != m.calls[at+uint64(i)] {
					t.Fatalf("call %d is %+v", at, c)
				}
			}
			if len(cs) == 0 {
				t.Fatalf("call %d is not there", at)
			}
		case op < 6: // intend, or take it back
			st := m.stand[at]
			if st.Outcome != 0 {
				break // nobody sends what has ended
			}
			r := journal.Intent(at, st.Attempt+1+rng.IntN(3), schema.WorkerID(fmt.Sprint("w", at)))
			r.Void = rng.IntN(4) == 0
			ok(t, o.Intend(ctx, r))
			switch {
			case r.Void:
				// An earlier owner's stays in this owner's list until the next takeover.
				m.mine[at] = journal.OpenIntent{}
			default:
				m.mine[at] = journal.OpenIntent{Attempt: r.Attempt, Worker: r.Worker}
			}
		case op < 9: // results, some for the second time
			var rs []journal.ResultRecord
			for range 1 + rng.IntN(20) {
				i := rng.Uint64N(n)
				last := max(m.mine[i].Attempt, m.intents[i].Attempt) // a result is of the last attempt
				r := journal.ResultRecord{Index: i, Outcome: outcomes[rng.IntN(len(outcomes))], Attempt: last + rng.IntN(2), ToolError: rng.IntN(5) == 0}
				switch rng.IntN(5) {
				case 0:
					r.Settle = journal.SettleDone
				case 1:
					r.Settle = journal.SettleAgain
				}
				rs = append(rs, r)
				m.result(&r)
			}
			ok(t, o.Results(ctx, rs...))
		case op < 10: // another owner
			if rng.IntN(2) == 0 {
				ok(t, o.Release(ctx))
				o, err = s.Claim(ctx, schema.DefaultTenant, id, "fd-2")
			} else {
				o.Close()
				o, err = s.Seize(ctx, id, "fd-3")
			}
			ok(t, err)
			for i, in := range m.mine {
				if in.Attempt == 0 { // taken back
					delete(m.intents, i)
					delete(m.mine, i)
				}
			}
			m.takeover()
			open := o.Progress().Open()
			for i, in := range open {
				in.At = m.intents[i].At
				open[i] = in
			}
			if diff := cmp.Diff(m.intents, open); diff != "" {
				t.Fatalf("open (-model +journal):\n%s", diff)
			}
		case op < 11: // another writer
			w.Close()
			w, err = s.Write(ctx, schema.DefaultTenant, id)
			ok(t, err)
			if w.Next() != n {
				t.Fatalf("resumes at %d of %d", w.Next(), n)
			}
		default: // a reader finds the one that counts
			r, err := s.FindResult(ctx, schema.DefaultTenant, id, at, journal.Cursor{})
			if st := m.stand[at]; (err == nil) != (st.Outcome != 0) || err == nil && r.Outcome != st.Outcome {
				t.Fatalf("result %d is %+v (%v), the model says %+v", at, r, err, st)
			}
		}
		p := o.Progress()
		if diff := cmp.Diff(m.counts(), p.Counts()); diff != "" {
			t.Fatalf("counts (-model +journal):\n%s", diff)
		}
		if p.Ended(at) != (m.stand[at].Outcome != 0) {
			t.Fatalf("call %d: ended %t, the model says %+v", at, p.Ended(at), m.stand[at])
		}
	}
	// What readers see, record for record, leads to the same.
	stand := map[uint64]journal.EffectiveOutcome{}
	for cursor, more := (journal.Cursor{}), true; more; {
		var rs []journal.ResultRecord
		rs, cursor, err = s.Results(ctx, schema.DefaultTenant, id, cursor, 17)
		ok(t, err)
		more = len(rs) > 0
		for _, r := range rs {
			next, counts := journal.Judge(stand[r.Index], r.Mark())
			if !counts {
				t.Fatalf("a record is stored that does not count: %+v", r)
			}
			stand[r.Index] = next
		}
	}
	if diff := cmp.Diff(m.stand, stand); diff != "" {
		t.Errorf("standings (-model +log):\n%s", diff)
	}
}
