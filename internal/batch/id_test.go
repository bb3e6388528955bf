package batch

import (
	"testing"

	"github.com/callyard/callyard/internal/ledger/journal"
)

func TestTheIDOfADurableCallSaysWhereItStands(t *testing.T) {
	seen := map[string]bool{}
	for _, kind := range []journal.Kind{journal.Batch, journal.Lane} {
		id := newJournalID(kind)
		for _, index := range []uint64{0, 1, 35, 36, 1 << 40, 1<<64 - 1} {
			call := CallID(id, index)
			if seen[call] {
				t.Errorf("two calls are %s", call)
			}
			seen[call] = true
			j, i, ok := ParseCallID(call)
			if !ok || j != id || i != index {
				t.Errorf("%s: %s %d %v, want %s %d", call, j, i, ok, id, index)
			}
		}
	}
}

func TestOtherIDsAreOfNoJournal(t *testing.T) {
	for _, id := range []string{
		"", "call_", "call_06b2t8m3c0w3v2q5n7k9a1d4fz", "call_06b2t8m3c0w3v2q5n7k9a1d4fz-", "call_06b2t8m3c0w3v2q5n7k9a1d4fz-b", "call_06b2t8m3c0w3v2q5n7k9a1d4fz-x1",
		"call_06b2t8m3c0w3v2q5n7k9a1d4fz-b01", "call_06b2t8m3c0w3v2q5n7k9a1d4fz-bA", "call_06b2t8m3c0w3v2q5n7k9a1d4fz-b-1", "call_06b2t8m3c0w3v2q5n7k9a1d4f.-b1",
		"call_short-b1", "batch_06b2t8m3c0w3v2q5n7k9a1d4fz-b1", "call_06b2t8m3c0w3v2q5n7k9a1d4fz-b3w5e11264sgsg",
	} {
		if j, i, ok := ParseCallID(id); ok {
			t.Errorf("%q is call %d of %s", id, i, j)
		}
	}
}

func FuzzParseCallID(f *testing.F) {
	f.Add("call_06b2t8m3c0w3v2q5n7k9a1d4fz-b1z")
	f.Fuzz(func(t *testing.T, id string) {
		if j, i, ok := ParseCallID(id); ok && CallID(j, i) != id {
			t.Errorf("%q is written as %q", id, CallID(j, i))
		}
	})
}
