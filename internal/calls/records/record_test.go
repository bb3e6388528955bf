package records

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/callyard/callyard/pkg/schema"
)

func TestNewestRecordOfACallWins(t *testing.T) {
	at := func(state schema.State, attempt int, changed int64) Record {
		return Record{State: state, Attempt: attempt, Changed: changed}
	}
	for _, c := range []struct {
		what         string
		older, newer Record
	}{
		{"what follows", at(schema.StateHeld, 0, 9), at(schema.StateQueued, 0, 5)},
		{"what follows, although its clock is behind", at(schema.StateQueued, 1, 9), at(schema.StateRunning, 1, 5)},
		{"an end", at(schema.StateRunning, 1, 9), at(schema.StateCanceled, 1, 5)},
		{"nobody knows", at(schema.StateRunning, 1, 9), at(schema.StateUnknown, 1, 5)},
		{"a person settled it", at(schema.StateUnknown, 1, 9), at(schema.StateSucceeded, 1, 5)},
		{"it is tried again", at(schema.StateRunning, 1, 5), at(schema.StateQueued, 2, 5)},
		{"a person had it run again", at(schema.StateUnknown, 1, 9), at(schema.StateRunning, 2, 5)},
		{"a dead letter is tried again", at(schema.StateFailed, 3, 9), at(schema.StateQueued, 4, 5)},
		{"the later of two ends", at(schema.StateSucceeded, 1, 5), at(schema.StateFailed, 1, 9)},
	} {
		if !c.newer.Newer(&c.older) || c.older.Newer(&c.newer) {
			t.Errorf("%s: %v and %v", c.what, c.older, c.newer)
		}
		for _, read := range [][2]Record{{c.older, c.newer}, {c.newer, c.older}} {
			if got := merge(&read[0], &read[1]); got.State != c.newer.State || got.Attempt != c.newer.Attempt {
				t.Errorf("%s: %s after %d attempts", c.what, got.State, got.Attempt)
			}
		}
	}
}

func TestARecordIsFilledInFromOlderOnes(t *testing.T) {
	held := Record{ID: "x", Principal: "agent", Owner: "team", Server: "s", Tool: "t", Arguments: DigestOf(nil), ArgumentBytes: 2, State: schema.StateHeld, Admitted: 10, Changed: 10, Approval: "appr_1", Durable: true, Trace: TraceID{1}}
	end := Record{ID: "x", State: schema.StateDenied, Admitted: 30, Ended: 30, Changed: 30, FrontDoor: "other"}
	want := held
	want.State, want.Ended, want.Changed, want.FrontDoor = schema.StateDenied, 30, 30, "other"
	a, b := held, end
	if diff := cmp.Diff(&want, merge(&a, &b)); diff != "" {
		t.Error(diff)
	}
	run := end
	run.Trace = TraceID{2}
	if a, b = held, run; merge(&a, &b).Trace != run.Trace {
		t.Error("the trace is not the one in which the call ended")
	}
	first := Record{State: schema.StateFailed, Attempt: 1, Error: schema.KindUnavailable, Detail: "no", Worker: "w1", Started: 5, Ended: 6}
	again := Record{State: schema.StateRunning, Attempt: 2}
	if got := merge(&first, &again); got.Worker != "" || got.Started != 0 || got.Error != "" || got.Ended != 0 {
		t.Errorf("the second attempt has what was the first's: %+v", got)
	}
}

func TestEachOutcomeHasItsState(t *testing.T) {
	fails := func(kind schema.Kind) Outcome { return Outcome{Err: schema.Errorf(kind, "No.")} }
	for _, c := range []struct {
		o    Outcome
		want schema.State
	}{
		{Outcome{Result: &schema.Result{}}, schema.StateSucceeded},
		{Outcome{Result: &schema.Result{ToolError: true}}, schema.StateSucceeded},
		{fails(schema.KindOutcomeUnknown), schema.StateUnknown},
		{fails(schema.KindCanceled), schema.StateCanceled},
		{fails(schema.KindExpired), schema.StateExpired},
		{fails(schema.KindForbidden), schema.StateDenied},
		{fails(schema.KindDisabled), schema.StateDenied},
		{fails(schema.KindQuota), schema.StateFailed},
		{Outcome{Err: errors.New("something else")}, schema.StateFailed},
		{Outcome{State: schema.StateHeld}, schema.StateHeld},
	} {
		r := Record{Admitted: 5}
		c.o.At = time.Unix(0, 9)
		r.end(&c.o)
		if r.State != c.want || r.Changed != 9 || (r.Ended == 9) != r.State.Ended() {
			t.Errorf("%+v: %+v", c.o, r)
		}
	}
	secret := Outcome{Err: fmt.Errorf("dial: password hunter2")}
	r := Record{}
	if r.end(&secret); strings.Contains(r.Detail, "hunter2") {
		t.Error("an inner error stands in the record")
	}
}

func TestLongTextsAreCutBetweenCharacters(t *testing.T) {
	r := Record{Tool: strings.Repeat("é", 200), Detail: strings.Repeat("漢", 300), Server: schema.ServerID(strings.Repeat("s", maxName))}
	r.cut()
	if r.Tool != strings.Repeat("é", 128) || r.Detail != strings.Repeat("漢", maxDetail/3) || len(r.Server) != maxName {
		t.Errorf("%q %q", r.Tool, r.Detail)
	}
}

func TestCallersSeeTheDocumentedShape(t *testing.T) {
	page := Page{Calls: []View{}, Next: "cursor"}
	for _, r := range append(samples(), tracedSamples()...) {
		page.Calls = append(page.Calls, r.View())
	}
	got, err := json.MarshalIndent(page, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	got = append(got, '\n')
	path := filepath.Join("testdata", "page.golden")
	if *update {
		if err := os.WriteFile(path, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (go test -update writes it)", err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestIDEncodesTheTimeOfItsRecords(t *testing.T) {
	before := time.Now().Add(-time.Millisecond)
	id := schema.NewCallID()
	k, ok := keyOf(string(id))
	if !ok || k.id() != id || !usualPrefix(id) {
		t.Fatalf("%s: %v %s", id, ok, k.id())
	}
	if at := time.UnixMilli(k.milli()); at.Before(before) || at.After(time.Now()) {
		t.Errorf("it says %s", at)
	}
	for _, bad := range []string{"", "call_", "call_06b2t8m3c0w3v2q5n7k9a1d4f", string(id) + "0", string(id[:len(id)-1]) + "1", "x" + string(id[5:]), strings.ToUpper(string(id)), strings.Repeat("a", 80) + string(id[4:])} {
		if _, ok := keyOf(bad); ok {
			t.Errorf("%q is taken for an id", bad)
		}
	}
	for _, at := range []time.Time{time.UnixMilli(0), time.UnixMilli(10_000), time.UnixMilli(1 << 47)} {
		k := keyAt(at)
		if k.slot() != at.Unix()/10 || slotStart(k.slot()).milli() > k.milli() {
			t.Errorf("%s is in slot %d", at, k.slot())
		}
		if at.UnixMilli() > 0 {
			if k.decrement(); k.milli() != at.UnixMilli()-1 {
				t.Errorf("before %d comes %d", at.UnixMilli(), k.milli())
			}
		}
	}
}
