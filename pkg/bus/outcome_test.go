package bus

import (
	"bytes"
	"encoding/hex"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/callyard/callyard/pkg/schema"
)

func goldenOutcomes() []Outcome {
	return []Outcome{
		{CallID: "call_1", State: OutcomeNever},
		{CallID: "call_2", State: OutcomeRunning},
		{CallID: "call_3", State: OutcomeEnded, Result: &schema.Result{Body: []byte(`{"n":9007199254740993}`), ToolError: true, Worker: "w", Took: 42 * time.Microsecond}},
		{CallID: "call_4", State: OutcomeEnded, Err: &schema.Error{Kind: schema.KindProtocol, Detail: "no", RPC: &schema.RPCError{Code: -32602, Message: "no", Data: []byte(`{"n":9007199254740993}`)}}},
		{CallID: "call_5", State: OutcomeEnded, Result: &schema.Result{Worker: "w"}, Err: &schema.Error{Kind: schema.KindResultTooLarge, Detail: "large"}},
		{CallID: "call_6", State: OutcomeForgotten},
	}
}

var sameError = cmpopts.IgnoreUnexported(schema.Error{})

func TestOutcomesRoundTrip(t *testing.T) {
	var msg []byte
	for _, f := range goldenOutcomes() {
		msg = AppendOutcome(msg, &f)
	}
	var got []Outcome
	if err := ReadOutcomes(msg, func(f Outcome) { got = append(got, f) }); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(goldenOutcomes(), got, sameError); diff != "" {
		t.Errorf("(-sent +read):\n%s", diff)
	}
	path := filepath.Join("testdata", "fates.golden")
	text := hex.Dump(msg)
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
		t.Errorf("the wire form changed (-golden +now):\n%s", diff)
	}
}

func TestNonJSONErrorIsStillRead(t *testing.T) {
	msg := AppendOutcome(nil, &Outcome{CallID: "c", State: OutcomeEnded, Err: &schema.Error{Kind: schema.KindProtocol, Detail: "no", RPC: &schema.RPCError{Data: []byte("{")}}})
	var got Outcome
	if err := ReadOutcomes(msg, func(f Outcome) { got = f }); err != nil || got.Err == nil || got.Err.Kind != schema.KindProtocol || got.Err.Detail != "no" {
		t.Errorf("got %+v, %v", got, err)
	}
}

func FuzzOutcomes(f *testing.F) {
	var all []byte
	for _, outcome := range goldenOutcomes() {
		f.Add(AppendOutcome(nil, &outcome))
		all = AppendOutcome(all, &outcome)
	}
	f.Add(all)
	f.Fuzz(func(t *testing.T, msg []byte) {
		before := bytes.Clone(msg)
		var first, second []Outcome
		if ReadOutcomes(msg, func(f Outcome) { first = append(first, f) }) != nil || len(first) == 0 {
			return
		}
		var again []byte
		for i := range first {
			again = AppendOutcome(again, &first[i])
		}
		if err := ReadOutcomes(again, func(f Outcome) { second = append(second, f) }); err != nil {
			t.Fatalf("what was read cannot be written and read again: %v", err)
		}
		if len(first) != len(second) {
			t.Fatalf("%d fates became %d", len(first), len(second))
		}
		for i := range first {
			if first[i].CallID != second[i].CallID || first[i].State != second[i].State || (first[i].Result == nil) != (second[i].Result == nil) || (first[i].Err == nil) != (second[i].Err == nil) {
				t.Fatalf("%+v became %+v", first[i], second[i])
			}
		}
		if !bytes.Equal(before, msg) {
			t.Fatal("reading changed the message")
		}
	})
}

func TestKeepFlagRoundTrips(t *testing.T) {
	for _, keep := range []bool{true, false} {
		var got *CallFrame
		if err := ReadCalls(AppendCall(nil, &CallFrame{Seq: 1, Keep: keep, Safe: !keep}), func(f *CallFrame) { got = f }); err != nil {
			t.Fatal(err)
		}
		if got.Keep != keep || got.Safe == keep {
			t.Errorf("sent keep %t, read %+v", keep, got)
		}
	}
}
