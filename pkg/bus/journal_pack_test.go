package bus

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// callsOf and resultsOf read a message with copies of what the readers reuse.
func callsOf(t testing.TB, msg []byte) (all []JournalCall) {
	t.Helper()
	if _, err := ReadJournalCalls(msg, func(c *JournalCall) { all = append(all, *c) }); err != nil {
		t.Fatal(err)
	}
	return all
}

func resultsOf(t testing.TB, msg []byte) (all []JournalResult, marks []JournalMark) {
	t.Helper()
	if _, err := ReadJournalResults(msg, func(r *JournalResult) { all = append(all, *r) }); err != nil {
		t.Fatal(err)
	}
	if _, err := ScanJournalResults(msg, func(m JournalMark) { marks = append(marks, m) }); err != nil {
		t.Fatal(err)
	}
	return all, marks
}

func TestRefusedLinesOfOneReasonTakeLittleRoom(t *testing.T) {
	const n = 1000
	why, other := []byte(`{"kind":"invalid-request","detail":"The line is no JSON object."}`), []byte(`{"kind":"invalid-request","detail":"The custom_id is too long."}`)
	calls := AppendJournalHead(nil, &JournalHead{Log: JournalCalls, Count: n, First: 7})
	results := AppendJournalHead(nil, &JournalHead{Log: JournalResults, Count: n})
	index := uint64(0)
	for i := range n {
		c, r := JournalCall{Method: JournalRefused, Arguments: why}, JournalResult{Outcome: JournalFailed, Error: why, Ended: journalTime}
		switch {
		case i%100 == 50: // a good one
			c, r = JournalCall{Server: "bank", Tool: "pay", Arguments: []byte(`{}`)}, JournalResult{Outcome: JournalSucceeded, CallID: fmt.Sprint("call_", i), Body: []byte(`{}`)}
		case i%100 == 60:
			c.Arguments, r.Error = other, other
		case i%100 == 70:
			c.CustomID, r.CustomID = fmt.Sprint("c", i), fmt.Sprint("c", i)
		case i%100 == 80:
			index++ // one that ended in another message
		}
		r.Index = index
		index++
		calls, results = AppendJournalCall(calls, &c), AppendJournalResult(results, &r)
	}
	packedCalls, packedResults := PackJournal(calls), PackJournal(results)
	if len(packedCalls)*15 > len(calls) || len(packedResults)*15 > len(results) {
		t.Errorf("%d and %d bytes became %d and %d", len(calls), len(results), len(packedCalls), len(packedResults))
	}
	if diff := cmp.Diff(callsOf(t, calls), callsOf(t, packedCalls)); diff != "" {
		t.Errorf("calls (-before +after):\n%s", diff)
	}
	before, marks := resultsOf(t, results)
	after, packedMarks := resultsOf(t, packedResults)
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("results (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(marks, packedMarks); diff != "" {
		t.Errorf("marks (-before +after):\n%s", diff)
	}
}

func TestOtherRecordsAreWrittenAsTheyAlwaysWere(t *testing.T) {
	calls := AppendJournalHead(nil, &JournalHead{Log: JournalCalls, Count: 3})
	results := AppendJournalHead(nil, &JournalHead{Log: JournalResults, Count: 3})
	for i := range uint64(3) {
		calls = AppendJournalCall(calls, &JournalCall{Server: "bank", Tool: "pay", Arguments: []byte(`{"n":1}`)})
		results = AppendJournalResult(results, &JournalResult{Index: i, CallID: fmt.Sprint("call_", i), Outcome: JournalFailed, Error: []byte(`{"kind":"x"}`)})
	}
	for _, msg := range append([][]byte{calls, results, nil, {1}, {1, 1}}, goldenJournal()["journal_calls"], goldenJournal()["journal_intents"], goldenJournal()["journal_results"]) {
		if got := PackJournal(bytes.Clone(msg)); !bytes.Equal(got, msg) {
			t.Errorf("%x became %x", msg, got)
		}
	}
}

func TestARepetitionThatCountsTooMuchIsRefused(t *testing.T) {
	msg := AppendJournalHead(nil, &JournalHead{Log: JournalResults, Count: 3})
	msg = AppendJournalResult(msg, &JournalResult{Outcome: JournalFailed, Error: []byte("{}")})
	msg[0] = packedVersion
	for _, n := range []uint64{1, 3, 1 << 40} { // 2 would fit
		n := n
		reads := 0
		if _, err := ReadJournalResults(appendRepeat(bytes.Clone(msg), n), func(*JournalResult) { reads++ }); err == nil || reads > 3 {
			t.Errorf("%d more of one was read %d times, %v", n, reads, err)
		}
	}
	if _, err := ReadJournalResults(appendRepeat(bytes.Clone(msg), 2), func(*JournalResult) {}); err != nil {
		t.Error(err)
	}
	first := AppendJournalHead(nil, &JournalHead{Log: JournalResults, Count: 1})
	first[0] = packedVersion
	if _, err := ReadJournalResults(appendRepeat(first, 1), func(*JournalResult) {}); err == nil {
		t.Error("a repetition of nothing was read")
	}
}
