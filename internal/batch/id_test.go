package batch

import (
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/store/journal"
	"github.com/callyard/callyard/pkg/schema"
)

var testIDs = NewIDs([]byte("a secret of 32 bytes, for tests."))

func TestDurableCallIDEncodesJournalAndIndex(t *testing.T) {
	seen := map[schema.CallID]bool{}
	for _, kind := range []journal.Kind{journal.Batch, journal.Lane} {
		id := newJournalID(kind)
		for _, index := range []uint64{0, 1, 35, 36, 1 << 40, 1<<64 - 1} {
			call := testIDs.CallID(id, index, "ann")
			if seen[call] {
				t.Errorf("two calls are %s", call)
			}
			seen[call] = true
			j, i, ok := ParseCallID(call)
			if !ok || j != id || i != index {
				t.Errorf("%s: %s %d %v, want %s %d", call, j, i, ok, id, index)
			}
			if j, i, ok := testIDs.Find(call, "ann"); !ok || j != id || i != index {
				t.Errorf("%s is not found: %s %d %v", call, j, i, ok)
			}
		}
	}
}

func TestCallIDIsBoundToItsPrincipalAndUnforgeable(t *testing.T) {
	id := newJournalID(journal.Lane)
	call := testIDs.CallID(id, 7, "ann")
	again := NewIDs([]byte("a secret of 32 bytes, for tests."))
	if again.CallID(id, 7, "ann") != call {
		t.Error("two front doors with one secret make two ids of one call")
	}
	if _, _, ok := again.Find(call, "ann"); !ok {
		t.Error("another front door does not find the call")
	}
	counted := schema.CallID(strings.Replace(string(call), "-s7-", "-s8-", 1))
	batch := schema.CallID(strings.Replace(string(call), "-s7-", "-b7-", 1))
	for what, found := range map[string]bool{
		"by another principal":          finds(testIDs, call, "bob"),
		"by nobody":                     finds(testIDs, call, ""),
		"counted up":                    finds(testIDs, counted, "ann"),
		"of another kind":               finds(testIDs, batch, "ann"),
		"of another journal":            finds(testIDs, schema.CallID(strings.Replace(string(call), string(call[5:31]), string(newJournalID(journal.Lane)[5:]), 1)), "ann"),
		"with another secret":           finds(NewIDs([]byte("another secret")), call, "ann"),
		"with the check of another one": finds(testIDs, call[:len(call)-checkLen]+testIDs.CallID(id, 8, "ann")[len(call)-checkLen:], "ann"),
	} {
		if found {
			t.Errorf("found %s", what)
		}
	}
}

func finds(i *IDs, id schema.CallID, principal string) bool {
	_, _, ok := i.Find(id, principal)
	return ok
}

func TestInvalidCallIDsAreRefused(t *testing.T) {
	for _, id := range []schema.CallID{
		"", "call_", "call_06b2t8m3c0w3v2q5n7k9a1d4fz", "call_06b2t8m3c0w3v2q5n7k9a1d4fz-", "call_06b2t8m3c0w3v2q5n7k9a1d4fz-b", "call_06b2t8m3c0w3v2q5n7k9a1d4fz-x1",
		"call_06b2t8m3c0w3v2q5n7k9a1d4fz-b1", "call_06b2t8m3c0w3v2q5n7k9a1d4fz-b1-", "call_06b2t8m3c0w3v2q5n7k9a1d4fz-b1-0123456789a", "call_06b2t8m3c0w3v2q5n7k9a1d4fz-b1-0123456789abc",
		"call_06b2t8m3c0w3v2q5n7k9a1d4fz-b1-0123456789A0", "call_06b2t8m3c0w3v2q5n7k9a1d4fz-b1-01234-56789a", "call_06b2t8m3c0w3v2q5n7k9a1d4fz--0123456789ab", "call_06b2t8m3c0w3v2q5n7k9a1d4fz-x1-0123456789ab",
		"call_06b2t8m3c0w3v2q5n7k9a1d4fz-b01-0123456789ab", "call_06b2t8m3c0w3v2q5n7k9a1d4fz-bA-0123456789ab", "call_06b2t8m3c0w3v2q5n7k9a1d4fz-b-1-0123456789ab", "call_06b2t8m3c0w3v2q5n7k9a1d4f.-b1-0123456789ab",
		"call_short-b1-0123456789ab", "batch_06b2t8m3c0w3v2q5n7k9a1d4fz-b1-0123456789ab", "call_06b2t8m3c0w3v2q5n7k9a1d4fz-b3w5e11264sgsg-0123456789ab",
	} {
		if j, i, ok := ParseCallID(id); ok {
			t.Errorf("%q is call %d of %s", id, i, j)
		}
	}
}

func FuzzParseCallID(f *testing.F) {
	f.Add("call_06b2t8m3c0w3v2q5n7k9a1d4fz-b1z-0123456789ab", "ann")
	f.Add(string(testIDs.CallID("lane_06b2t8m3c0w3v2q5n7k9a1d4fz", 71, "ann")), "ann")
	f.Fuzz(func(t *testing.T, text, principal string) {
		id := schema.CallID(text)
		j, i, ok := ParseCallID(id)
		if found := finds(testIDs, id, principal); found && (!ok || testIDs.CallID(j, i, principal) != id) {
			t.Errorf("%q is found for %q", id, principal)
		}
		if ok && testIDs.CallID(j, i, principal)[:len(id)-checkLen] != id[:len(id)-checkLen] {
			t.Errorf("%q is written as %q", id, testIDs.CallID(j, i, principal))
		}
	})
}

func BenchmarkCallID(b *testing.B) {
	b.ReportAllocs()
	for i := range b.N {
		testIDs.CallID("lane_06b2t8m3c0w3v2q5n7k9a1d4fz", uint64(i), "ann")
	}
}

func TestIDsOfAJournalBeginAlike(t *testing.T) {
	batch := newJournalID(journal.Batch)
	journals := []schema.BatchID{batch, newJournalID(journal.Batch), schema.BatchID(lanePrefix + strings.TrimPrefix(string(batch), batchPrefix)), newJournalID(journal.Lane)}
	for _, of := range journals {
		beginning := string(appendJournal(nil, of))
		for _, id := range journals {
			for _, index := range []uint64{0, 35, 36, 1 << 40} {
				if got := strings.HasPrefix(string(testIDs.CallID(id, index, ann.Name)), beginning); got != (id == of) {
					t.Errorf("call %d of %s and %s: %t", index, id, of, got)
				}
			}
		}
	}
}
