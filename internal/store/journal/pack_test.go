package journal

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/callyard/callyard/pkg/schema"
)

// decodedCalls and decodedResults read a message with copies of what the readers reuse.
func decodedCalls(t testing.TB, msg []byte) (all []CallRecord) {
	t.Helper()
	if _, err := ReadCalls(msg, func(c *CallRecord) { all = append(all, *c) }); err != nil {
		t.Fatal(err)
	}
	return all
}

func decodedResults(t testing.TB, msg []byte) (all []ResultRecord, marks []Mark) {
	t.Helper()
	if _, err := ReadResults(msg, func(r *ResultRecord) { all = append(all, *r) }); err != nil {
		t.Fatal(err)
	}
	if _, err := scanResults(msg, func(m Mark) { marks = append(marks, m) }); err != nil {
		t.Fatal(err)
	}
	return all, marks
}

func TestRefusedLinesOfOneReasonTakeLittleSpace(t *testing.T) {
	const n = 1000
	why, other := []byte(`{"kind":"invalid-request","detail":"The line is no JSON object."}`), []byte(`{"kind":"invalid-request","detail":"The custom_id is too long."}`)
	calls := appendHead(nil, &Head{Log: LogCalls, Count: n, First: 7})
	results := appendHead(nil, &Head{Log: LogResults, Count: n})
	index := uint64(0)
	for i := range n {
		c, r := CallRecord{Method: MethodRefused, Arguments: why}, ResultRecord{Outcome: Failed, Error: why, Ended: goldenTime}
		switch {
		case i%100 == 50: // a good one
			c, r = CallRecord{Server: "bank", Tool: "pay", Arguments: []byte(`{}`)}, ResultRecord{Outcome: Succeeded, CallID: schema.CallID(fmt.Sprint("call_", i)), Body: []byte(`{}`)}
		case i%100 == 60:
			c.Arguments, r.Error = other, other
		case i%100 == 70:
			c.CustomID, r.CustomID = fmt.Sprint("c", i), fmt.Sprint("c", i)
		case i%100 == 80:
			index++ // one that ended in another message
		}
		r.Index = index
		index++
		calls, results = appendCall(calls, &c), appendResult(results, &r)
	}
	packedCalls, packedResults := packMessage(calls), packMessage(results)
	if len(packedCalls)*15 > len(calls) || len(packedResults)*15 > len(results) {
		t.Errorf("%d and %d bytes became %d and %d", len(calls), len(results), len(packedCalls), len(packedResults))
	}
	if diff := cmp.Diff(decodedCalls(t, calls), decodedCalls(t, packedCalls)); diff != "" {
		t.Errorf("calls (-before +after):\n%s", diff)
	}
	before, marks := decodedResults(t, results)
	after, packedMarks := decodedResults(t, packedResults)
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("results (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(marks, packedMarks); diff != "" {
		t.Errorf("marks (-before +after):\n%s", diff)
	}
}

func TestMessagesWithoutRepetitionAreStoredUnchanged(t *testing.T) {
	calls := appendHead(nil, &Head{Log: LogCalls, Count: 3})
	results := appendHead(nil, &Head{Log: LogResults, Count: 3})
	for i := range uint64(3) {
		calls = appendCall(calls, &CallRecord{Server: "bank", Tool: "pay", Arguments: []byte(`{"n":1}`)})
		results = appendResult(results, &ResultRecord{Index: i, CallID: schema.CallID(fmt.Sprint("call_", i)), Outcome: Failed, Error: []byte(`{"kind":"x"}`)})
	}
	for _, msg := range append([][]byte{calls, results, nil, {1}, {1, 1}}, goldenMessages()["journal_calls"], goldenMessages()["journal_intents"], goldenMessages()["journal_results"]) {
		if got := packMessage(bytes.Clone(msg)); !bytes.Equal(got, msg) {
			t.Errorf("%x became %x", msg, got)
		}
	}
}

func TestRepetitionOverTheRecordCountIsRefused(t *testing.T) {
	msg := appendHead(nil, &Head{Log: LogResults, Count: 3})
	msg = appendResult(msg, &ResultRecord{Outcome: Failed, Error: []byte("{}")})
	msg[0] = packedVersion
	for _, n := range []uint64{1, 3, 1 << 40} { // 2 would fit
		reads := 0
		if _, err := ReadResults(appendRepeat(bytes.Clone(msg), n), func(*ResultRecord) { reads++ }); err == nil || reads > 3 {
			t.Errorf("%d more of one was read %d times, %v", n, reads, err)
		}
	}
	if _, err := ReadResults(appendRepeat(bytes.Clone(msg), 2), func(*ResultRecord) {}); err != nil {
		t.Error(err)
	}
	first := appendHead(nil, &Head{Log: LogResults, Count: 1})
	first[0] = packedVersion
	if _, err := ReadResults(appendRepeat(first, 1), func(*ResultRecord) {}); err == nil {
		t.Error("a repetition of nothing was read")
	}
}
