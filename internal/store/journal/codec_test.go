package journal

import (
	"bytes"
	"encoding/hex"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/callyard/callyard/pkg/bus/frame"
	"github.com/callyard/callyard/pkg/schema"
)

var goldenTime = time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)

func goldenMessages() map[string][]byte {
	calls := appendHead(nil, &Head{Log: LogCalls, Epoch: 3, Writer: 0xfedcba9876543210, Number: 7, First: 1000, Count: 2, At: goldenTime})
	for _, r := range goldenCalls() {
		calls = appendCall(calls, &r)
	}
	intents := appendHead(nil, &Head{Log: LogIntents, Epoch: 1, Writer: 1, Number: 1, Count: 2, At: goldenTime})
	for _, r := range goldenIntents() {
		intents = appendIntent(intents, &r)
	}
	results := appendHead(nil, &Head{Log: LogResults, Epoch: 1, Writer: 1, Number: 2, First: 5, Count: 5, At: goldenTime})
	for _, r := range goldenResults() {
		results = appendResult(results, &r)
	}
	opening := appendHead(nil, &Head{Log: LogResults, Epoch: 9, Writer: 2, Number: 1, First: 9, Opening: true, At: goldenTime})
	seal := appendHead(nil, &Head{Log: LogCalls, Epoch: 1, Writer: 2, Number: 4, First: 9, Sealed: true})
	return map[string][]byte{"journal_calls": calls, "journal_intents": intents, "journal_results": results, "journal_opening": opening, "journal_seal": seal}
}

func goldenCalls() []CallRecord {
	return []CallRecord{
		{Index: 1000, CustomID: "line-1", Server: "bank", Tool: "pay", Arguments: []byte(`{"n":9007199254740993}`)},
		{
			Index: 1001, ID: "call_2", CustomID: "z", Method: "resources/read", Server: "s p a c e", Tool: "t", ToolDigest: "sha256:00",
			Timeout: 1500 * time.Microsecond, Expires: goldenTime.Add(time.Hour), Accepted: goldenTime, Safe: true, Held: true, MaxAttempts: 3,
			Principal: schema.Principal{Name: "ana", Owner: "team", Groups: []string{"a", "b"}}, Trace: schema.Trace{Parent: "00-x-y-01", State: "k=v"},
			CallbackURL: "https://example.com/cb", Key: "abc", Approval: "ap_1", Warrant: []byte{0, 255, 1}, Extra: []byte(`{"_meta":{}}`),
			ArgumentsObject: Object{Name: "OBJ", SHA256: "00ff", Size: 1 << 33},
		},
	}
}

func goldenIntents() []IntentRecord {
	return []IntentRecord{
		{Ranges: []Range{{0, 1}, {5, 1000}, {1 << 20, 3}}, Attempt: 1, Worker: "w_1"},
		{Ranges: []Range{{7, 1}}, Attempt: 2, Void: true},
	}
}

func goldenResults() []ResultRecord {
	return []ResultRecord{
		{Index: 0, Outcome: Succeeded, Attempt: 1, Body: []byte(`{"content":[]}`)},
		{
			Index: 1 << 20, Outcome: Succeeded, Attempt: 2, CallID: "call_2", CustomID: "z", ToolError: true, Worker: "w_1", Started: goldenTime,
			Ended: goldenTime.Add(time.Second), Digest: "sha256:01", BodyObject: Object{Name: "OBJ", SHA256: "aa", Size: 300000},
		},
		{Index: 4, Outcome: Dead, Attempt: 3, Error: []byte(`{"kind":"unavailable"}`), Reason: "no attempt succeeded"},
		{Index: 5, Outcome: Failed, Settle: SettleDone, By: "eve", Reason: "seen in the books", Ended: goldenTime},
		{Index: 6, Outcome: Succeeded, Attempt: 1, Input: true, Body: []byte(`{"resultType":"input_required"}`)},
	}
}

var update = flag.Bool("update", false, "rewrite the golden files")

// What is stored is a promise to later versions: a change of a golden file is a new
// version of the form, or a field that older readers skip.
func TestStoredFormatMatchesTheGoldenFiles(t *testing.T) {
	for name, got := range goldenMessages() {
		path := filepath.Join("testdata", name+".golden")
		text := hex.Dump(got)
		if *update {
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), text); diff != "" {
			t.Errorf("%s (-golden +now):\n%s", name, diff)
		}
	}
}

func TestStoredRecordsRoundTrip(t *testing.T) {
	all := goldenMessages()
	var calls []CallRecord
	h, err := ReadCalls(all["journal_calls"], func(r *CallRecord) { calls = append(calls, *r) })
	if err != nil || h.Epoch != 3 || h.Writer != 0xfedcba9876543210 || h.Number != 7 || !h.At.Equal(goldenTime) || h.Opening || h.Sealed {
		t.Errorf("head %+v, %v", h, err)
	}
	if diff := cmp.Diff(goldenCalls(), calls); diff != "" {
		t.Error(diff)
	}
	var intents []IntentRecord
	_, err = readIntents(all["journal_intents"], func(r *IntentRecord) {
		kept := *r
		kept.Ranges = append([]Range(nil), r.Ranges...)
		intents = append(intents, kept)
	})
	if err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(goldenIntents(), intents); diff != "" {
		t.Error(diff)
	}
	var results []ResultRecord
	if _, err = ReadResults(all["journal_results"], func(r *ResultRecord) { results = append(results, *r) }); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(goldenResults(), results); diff != "" {
		t.Error(diff)
	}
	var marks []Mark
	if _, err = scanResults(all["journal_results"], func(m Mark) { marks = append(marks, m) }); err != nil {
		t.Error(err)
	}
	for i, r := range goldenResults() {
		if marks[i] != r.Mark() {
			t.Errorf("mark %d is %+v, not %+v", i, marks[i], r.Mark())
		}
	}
	if h, rest, err := ReadHead(all["journal_opening"], LogResults); err != nil || !h.Opening || h.Sealed || len(rest) > 0 {
		t.Errorf("opening %+v, %v", h, err)
	}
	if h, _, err := ReadHead(all["journal_seal"], LogCalls); err != nil || h.Opening || !h.Sealed || h.First != 9 {
		t.Errorf("seal %+v, %v", h, err)
	}
}

func TestDamagedRecordsAreRefused(t *testing.T) {
	good := goldenMessages()["journal_results"]
	few := appendHead(nil, &Head{Log: LogResults, Count: 1})
	many := few
	for range 2 {
		many = appendResult(many, &ResultRecord{Index: 1})
	}
	for name, msg := range map[string][]byte{
		"empty": nil, "version only": good[:1], "other version": append([]byte{packedVersion + 1}, good[1:]...),
		"other log": append([]byte{recordVersion, byte(LogCalls)}, good[2:]...), "cut": good[:len(good)-1], "too few": few, "too many": many,
	} {
		if _, err := ReadResults(msg, func(*ResultRecord) {}); err == nil {
			t.Errorf("%s: read", name)
		}
		if _, err := scanResults(msg, func(Mark) {}); err == nil {
			t.Errorf("%s: scanned", name)
		}
	}
}

func TestUnknownFieldsOfRecordsAreSkipped(t *testing.T) {
	msg := appendHead(nil, &Head{Log: LogResults, Count: 1})
	msg, start := frame.Begin(msg)
	msg = frame.AppendUint(msg, tagIndex, 9)
	msg = frame.AppendString(msg, 200, "from a later version")
	msg = frame.AppendUint(msg, tagOutcome, uint64(Failed))
	msg = frame.End(msg, start, nil)
	var got ResultRecord
	if _, err := ReadResults(msg, func(r *ResultRecord) { got = *r }); err != nil || got.Index != 9 || got.Outcome != Failed {
		t.Errorf("%+v, %v", got, err)
	}
}

// FuzzReadJournal reads anything; a message that it can read must be the same when it is
// written and read again.
func FuzzReadJournal(f *testing.F) {
	for _, msg := range goldenMessages() {
		f.Add(msg)
	}
	f.Fuzz(func(t *testing.T, msg []byte) {
		head := func(log Log, n int, h Head) []byte {
			h.Log, h.Count = log, n
			return appendHead(nil, &h)
		}
		var calls, again []CallRecord
		if h, err := ReadCalls(msg, func(r *CallRecord) { calls = append(calls, *r) }); err == nil {
			out := head(LogCalls, len(calls), h)
			for i := range calls {
				out = appendCall(out, &calls[i])
			}
			if _, err := ReadCalls(out, func(r *CallRecord) { again = append(again, *r) }); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(calls, again); diff != "" {
				t.Fatal(diff)
			}
		}
		var results, more []ResultRecord
		if h, err := ReadResults(msg, func(r *ResultRecord) { results = append(results, *r) }); err == nil {
			out := head(LogResults, len(results), h)
			for i := range results {
				out = appendResult(out, &results[i])
			}
			i := 0
			if _, err := scanResults(msg, func(m Mark) {
				if m != results[i].Mark() {
					t.Fatalf("scanned %+v, read %+v", m, results[i])
				}
				i++
			}); err != nil || i != len(results) {
				t.Fatal("scan and read do not agree", err)
			}
			if _, err := ReadResults(out, func(r *ResultRecord) { more = append(more, *r) }); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(results, more); diff != "" {
				t.Fatal(diff)
			}
		}
		var intents [][]byte
		if h, err := readIntents(msg, func(r *IntentRecord) { intents = append(intents, appendIntent(nil, r)) }); err == nil {
			out := append(head(LogIntents, len(intents), h), bytes.Join(intents, nil)...)
			i := 0
			if _, err := readIntents(out, func(r *IntentRecord) {
				if !bytes.Equal(appendIntent(nil, r), intents[i]) {
					t.Fatal("an intent is another when it is read again")
				}
				i++
			}); err != nil {
				t.Fatal(err)
			}
		}
	})
}
