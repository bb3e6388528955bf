package journal

import (
	"runtime"
	"testing"
)

func TestResultPrecedence(t *testing.T) {
	open := EffectiveOutcome{}
	unknown := EffectiveOutcome{Outcome: Unknown, Attempt: 1}
	dead := EffectiveOutcome{Outcome: Dead, Attempt: 3}
	good := EffectiveOutcome{Outcome: Succeeded, Attempt: 1}
	settled := EffectiveOutcome{Outcome: Failed, Attempt: 1, Settled: true}
	again := EffectiveOutcome{Attempt: 3}
	mark := func(o Outcome, attempt int) Mark { return Mark{Outcome: o, Attempt: attempt} }
	said := func(s Settle, o Outcome) Mark { return Mark{Outcome: o, Settle: s} }
	for _, c := range []struct {
		why    string
		now    EffectiveOutcome
		r      Mark
		want   EffectiveOutcome
		counts bool
	}{
		{"the first end counts", open, mark(Succeeded, 1), good, true},
		{"so does a first failure", open, mark(Failed, 2), EffectiveOutcome{Outcome: Failed, Attempt: 2}, true},
		{"so does not knowing", open, mark(Unknown, 1), unknown, true},
		{"a second end does not", good, mark(Failed, 2), good, false},
		{"nor the same one again", good, mark(Succeeded, 1), good, false},
		{"a late answer counts after unknown", unknown, mark(Succeeded, 1), good, true},
		{"a late failure too", unknown, mark(Failed, 1), EffectiveOutcome{Outcome: Failed, Attempt: 1}, true},
		{"unknown twice does not", unknown, mark(Unknown, 2), unknown, false},
		{"unknown is not canceled", unknown, mark(Canceled, 0), unknown, false},
		{"a late answer does not raise the dead", dead, mark(Succeeded, 2), dead, false},
		{"a person settles unknown", unknown, said(SettleDone, Failed), settled, true},
		{"a person settles dead", dead, said(SettleDone, Succeeded), EffectiveOutcome{Outcome: Succeeded, Attempt: 3, Settled: true}, true},
		{"but only as succeeded or failed", unknown, said(SettleDone, Canceled), unknown, false},
		{"and only once", settled, said(SettleDone, Succeeded), settled, false},
		{"a late answer does not overrule a person", settled, mark(Succeeded, 1), settled, false},
		{"what is known is not settled", good, said(SettleDone, Failed), good, false},
		{"nor what has not ended", open, said(SettleDone, Failed), open, false},
		{"a person orders unknown to run again", unknown, said(SettleAgain, 0), EffectiveOutcome{Attempt: 1}, true},
		{"a person orders dead to run again", dead, said(SettleAgain, 0), again, true},
		{"what is known does not run again", good, said(SettleAgain, 0), good, false},
		{"nor what was settled", settled, said(SettleAgain, 0), settled, false},
		{"nor what has not ended", open, said(SettleAgain, 0), open, false},
		{"an order is given once", again, said(SettleAgain, 0), again, false},
		{"after the order an old attempt does not count", again, mark(Succeeded, 3), again, false},
		{"a new one does", again, mark(Succeeded, 4), EffectiveOutcome{Outcome: Succeeded, Attempt: 4}, true},
		{"it can be canceled", again, mark(Canceled, 0), EffectiveOutcome{Outcome: Canceled, Attempt: 3}, true},
		{"or expire", again, mark(Expired, 0), EffectiveOutcome{Outcome: Expired, Attempt: 3}, true},
		{"it can become unknown once more", again, mark(Unknown, 4), EffectiveOutcome{Outcome: Unknown, Attempt: 4}, true},
		{"no outcome is no end", open, mark(0, 1), open, false},
		{"an outcome of a later version is none", open, mark(200, 1), open, false},
		{"a settlement of a later version is none", unknown, Mark{Outcome: Succeeded, Settle: 9}, unknown, false},
	} {
		got, counts := Judge(c.now, c.r)
		if got != c.want || counts != c.counts {
			t.Errorf("%s: %+v, %t; want %+v, %t", c.why, got, counts, c.want, c.counts)
		}
	}
}

func TestRevertedRecordRestoresProgress(t *testing.T) {
	all := []Mark{}
	for _, o := range []Outcome{Succeeded, Failed, Unknown, Dead, Canceled} {
		all = append(all, Mark{Index: 3, Outcome: o, Attempt: 1, ToolError: o == Succeeded}, Mark{Index: 3, Outcome: o, Attempt: 2, Settle: SettleDone})
	}
	all = append(all, Mark{Index: 3, Settle: SettleAgain})
	for _, first := range append(all, Mark{}) {
		for _, second := range append(all, Mark{}) {
			for _, third := range all {
				p := newProgress(10)
				p.intent(&Head{Epoch: 1}, &IntentRecord{Ranges: []Range{{First: 3, Count: 1}}, Attempt: 1})
				p.apply(first)
				p.apply(second)
				counts, ended, standing, open := p.Counts(), p.Ended(3), p.Standing(3), p.Open()[3]
				u, applied := p.apply(third)
				if !applied {
					continue
				}
				p.revert(u, third)
				if p.Counts() != counts || p.Ended(3) != ended || p.Standing(3) != standing || p.Open()[3] != open {
					t.Fatalf("%+v, %+v, %+v: %+v %t %+v; was %+v %t %+v", first, second, third, p.Counts(), p.Ended(3), p.Standing(3), counts, ended, standing)
				}
			}
		}
	}
}

func TestAMillionCallsTakeLittleMemory(t *testing.T) {
	const n = 1_000_000
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	p := newProgress(n)
	p.intent(&Head{}, &IntentRecord{Ranges: []Range{{First: n - 500, Count: 500}}, Attempt: 1})
	for i := range uint64(n - 100) {
		p.apply(Mark{Index: i, Outcome: Succeeded, Attempt: 1})
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if took := int64(after.HeapAlloc) - int64(before.HeapAlloc); took > 512<<10 {
		t.Errorf("%d bytes", took)
	}
	if p.Next(0) != n-100 || p.Counts().Succeeded != n-100 || len(p.Open()) != 100 {
		t.Errorf("next %d, %+v, open %d", p.Next(0), p.Counts(), len(p.Open()))
	}
}

func TestJournalStateTransitions(t *testing.T) {
	for from, want := range map[State][]State{
		Receiving: {Sealed, Canceling}, Sealed: {Running, Canceling, Ended}, Running: {Canceling, Ended}, Canceling: {Ended}, Ended: {Running},
	} {
		got := moves(from)
		if len(got) != len(want) {
			t.Errorf("from %s: %v, want %v", from, got, want)
		}
		for i := range got {
			if got[i] != want[i] {
				t.Errorf("from %s: %v, want %v", from, got, want)
			}
		}
	}
}

func FuzzParseCursor(f *testing.F) {
	f.Add("")
	f.Add(Cursor{1 << 60, 999}.String())
	f.Add("-")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := ParseCursor(text)
		if err != nil {
			return
		}
		if again, err := ParseCursor(c.String()); err != nil || again != c {
			t.Errorf("%q reads as %+v and comes back as %+v, %v", text, c, again, err)
		}
	})
}
