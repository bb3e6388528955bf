package bus

import (
	"bytes"
	"encoding/hex"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/callyard/callyard/pkg/schema"
)

var journalTime = time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)

func goldenJournal() map[string][]byte {
	calls := AppendJournalHead(nil, &JournalHead{Log: JournalCalls, Epoch: 3, Writer: 0xfedcba9876543210, Number: 7, First: 1000, Count: 2, At: journalTime})
	for _, r := range goldenJournalCalls() {
		calls = AppendJournalCall(calls, &r)
	}
	intents := AppendJournalHead(nil, &JournalHead{Log: JournalIntents, Epoch: 1, Writer: 1, Number: 1, Count: 2, At: journalTime})
	for _, r := range goldenIntents() {
		intents = AppendJournalIntent(intents, &r)
	}
	results := AppendJournalHead(nil, &JournalHead{Log: JournalResults, Epoch: 1, Writer: 1, Number: 2, First: 5, Count: 5, At: journalTime})
	for _, r := range goldenResults() {
		results = AppendJournalResult(results, &r)
	}
	opening := AppendJournalHead(nil, &JournalHead{Log: JournalResults, Epoch: 9, Writer: 2, Number: 1, First: 9, Opening: true, At: journalTime})
	seal := AppendJournalHead(nil, &JournalHead{Log: JournalCalls, Epoch: 1, Writer: 2, Number: 4, First: 9, Sealed: true})
	return map[string][]byte{"journal_calls": calls, "journal_intents": intents, "journal_results": results, "journal_opening": opening, "journal_seal": seal}
}

func goldenJournalCalls() []JournalCall {
	return []JournalCall{
		{Index: 1000, CustomID: "line-1", Server: "bank", Tool: "pay", Arguments: []byte(`{"n":9007199254740993}`)},
		{
			Index: 1001, ID: "call_2", CustomID: "z", Method: "resources/read", Server: "s p a c e", Tool: "t", ToolDigest: "sha256:00",
			Timeout: 1500 * time.Microsecond, Expires: journalTime.Add(time.Hour), Accepted: journalTime, Safe: true, Held: true, MaxAttempts: 3,
			Principal: schema.Principal{Name: "ana", Owner: "team", Groups: []string{"a", "b"}}, Trace: schema.Trace{Parent: "00-x-y-01", State: "k=v"},
			CallbackURL: "https://example.com/cb", Key: "abc", Approval: "ap_1", Warrant: []byte{0, 255, 1}, Extra: []byte(`{"_meta":{}}`),
			ArgumentsObject: JournalObject{Name: "OBJ", SHA256: "00ff", Size: 1 << 33},
		},
	}
}

func goldenIntents() []JournalIntent {
	return []JournalIntent{
		{Ranges: []JournalRange{{0, 1}, {5, 1000}, {1 << 20, 3}}, Attempt: 1, Worker: "w_1"},
		{Ranges: []JournalRange{{7, 1}}, Attempt: 2, Void: true},
	}
}

func goldenResults() []JournalResult {
	return []JournalResult{
		{Index: 0, Outcome: JournalSucceeded, Attempt: 1, Body: []byte(`{"content":[]}`)},
		{
			Index: 1 << 20, Outcome: JournalSucceeded, Attempt: 2, CallID: "call_2", CustomID: "z", ToolError: true, Worker: "w_1", Started: journalTime,
			Ended: journalTime.Add(time.Second), Digest: "sha256:01", BodyObject: JournalObject{Name: "OBJ", SHA256: "aa", Size: 300000},
		},
		{Index: 4, Outcome: JournalDead, Attempt: 3, Error: []byte(`{"kind":"unavailable"}`), Reason: "no attempt succeeded"},
		{Index: 5, Outcome: JournalFailed, Settle: JournalSettleDone, By: "eve", Reason: "seen in the books", Ended: journalTime},
		{Index: 6, Outcome: JournalSucceeded, Attempt: 1, Input: true, Body: []byte(`{"resultType":"input_required"}`)},
	}
}

// What is stored is a promise to later versions: a change of a golden file is a new
// version of the form, or a field that older readers skip.
func TestTheStoredFormIsTheOneInTheGoldenFile(t *testing.T) {
	for name, got := range goldenJournal() {
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

func TestStoredRecordsComeBackAsTheyWere(t *testing.T) {
	all := goldenJournal()
	var calls []JournalCall
	h, err := ReadJournalCalls(all["journal_calls"], func(r *JournalCall) { calls = append(calls, *r) })
	if err != nil || h.Epoch != 3 || h.Writer != 0xfedcba9876543210 || h.Number != 7 || !h.At.Equal(journalTime) || h.Opening || h.Sealed {
		t.Errorf("head %+v, %v", h, err)
	}
	if diff := cmp.Diff(goldenJournalCalls(), calls); diff != "" {
		t.Error(diff)
	}
	var intents []JournalIntent
	_, err = ReadJournalIntents(all["journal_intents"], func(r *JournalIntent) {
		kept := *r
		kept.Ranges = append([]JournalRange(nil), r.Ranges...)
		intents = append(intents, kept)
	})
	if err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(goldenIntents(), intents); diff != "" {
		t.Error(diff)
	}
	var results []JournalResult
	if _, err = ReadJournalResults(all["journal_results"], func(r *JournalResult) { results = append(results, *r) }); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(goldenResults(), results); diff != "" {
		t.Error(diff)
	}
	var marks []JournalMark
	if _, err = ScanJournalResults(all["journal_results"], func(m JournalMark) { marks = append(marks, m) }); err != nil {
		t.Error(err)
	}
	for i, r := range goldenResults() {
		if marks[i] != r.Mark() {
			t.Errorf("mark %d is %+v, not %+v", i, marks[i], r.Mark())
		}
	}
	if h, rest, err := ReadJournalHead(all["journal_opening"], JournalResults); err != nil || !h.Opening || h.Sealed || len(rest) > 0 {
		t.Errorf("opening %+v, %v", h, err)
	}
	if h, _, err := ReadJournalHead(all["journal_seal"], JournalCalls); err != nil || h.Opening || !h.Sealed || h.First != 9 {
		t.Errorf("seal %+v, %v", h, err)
	}
}

func TestDamagedRecordsAreRefused(t *testing.T) {
	good := goldenJournal()["journal_results"]
	few := AppendJournalHead(nil, &JournalHead{Log: JournalResults, Count: 1})
	many := few
	for range 2 {
		many = AppendJournalResult(many, &JournalResult{Index: 1})
	}
	for name, msg := range map[string][]byte{
		"empty": nil, "version only": good[:1], "other version": append([]byte{packedVersion + 1}, good[1:]...),
		"other log": append([]byte{journalVersion, byte(JournalCalls)}, good[2:]...), "cut": good[:len(good)-1], "too few": few, "too many": many,
	} {
		if _, err := ReadJournalResults(msg, func(*JournalResult) {}); err == nil {
			t.Errorf("%s: read", name)
		}
		if _, err := ScanJournalResults(msg, func(JournalMark) {}); err == nil {
			t.Errorf("%s: scanned", name)
		}
	}
}

func TestUnknownFieldsOfRecordsAreSkipped(t *testing.T) {
	msg := AppendJournalHead(nil, &JournalHead{Log: JournalResults, Count: 1})
	msg, start := beginRecord(msg)
	msg = appendUint(msg, jIndex, 9)
	msg = appendString(msg, 200, "from a later version")
	msg = appendUint(msg, jOutcome, uint64(JournalFailed))
	msg = endRecord(msg, start, nil)
	var got JournalResult
	if _, err := ReadJournalResults(msg, func(r *JournalResult) { got = *r }); err != nil || got.Index != 9 || got.Outcome != JournalFailed {
		t.Errorf("%+v, %v", got, err)
	}
}

// FuzzReadJournal reads anything, and what it reads comes back when it is written
// and read again.
func FuzzReadJournal(f *testing.F) {
	for _, msg := range goldenJournal() {
		f.Add(msg)
	}
	f.Fuzz(func(t *testing.T, msg []byte) {
		head := func(log JournalLog, n int, h JournalHead) []byte {
			h.Log, h.Count = log, n
			return AppendJournalHead(nil, &h)
		}
		var calls, again []JournalCall
		if h, err := ReadJournalCalls(msg, func(r *JournalCall) { calls = append(calls, *r) }); err == nil {
			out := head(JournalCalls, len(calls), h)
			for i := range calls {
				out = AppendJournalCall(out, &calls[i])
			}
			if _, err := ReadJournalCalls(out, func(r *JournalCall) { again = append(again, *r) }); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(calls, again); diff != "" {
				t.Fatal(diff)
			}
		}
		var results, more []JournalResult
		if h, err := ReadJournalResults(msg, func(r *JournalResult) { results = append(results, *r) }); err == nil {
			out := head(JournalResults, len(results), h)
			for i := range results {
				out = AppendJournalResult(out, &results[i])
			}
			i := 0
			if _, err := ScanJournalResults(msg, func(m JournalMark) {
				if m != results[i].Mark() {
					t.Fatalf("scanned %+v, read %+v", m, results[i])
				}
				i++
			}); err != nil || i != len(results) {
				t.Fatal("scan and read do not agree", err)
			}
			if _, err := ReadJournalResults(out, func(r *JournalResult) { more = append(more, *r) }); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(results, more); diff != "" {
				t.Fatal(diff)
			}
		}
		var intents [][]byte
		if h, err := ReadJournalIntents(msg, func(r *JournalIntent) { intents = append(intents, AppendJournalIntent(nil, r)) }); err == nil {
			out := append(head(JournalIntents, len(intents), h), bytes.Join(intents, nil)...)
			i := 0
			if _, err := ReadJournalIntents(out, func(r *JournalIntent) {
				if !bytes.Equal(AppendJournalIntent(nil, r), intents[i]) {
					t.Fatal("an intent is another when it is read again")
				}
				i++
			}); err != nil {
				t.Fatal(err)
			}
		}
	})
}
