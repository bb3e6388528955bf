package batches

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/callyard/callyard/internal/calls/admission"
	"github.com/callyard/callyard/internal/frontdoor/rest/httpapi"
	"github.com/callyard/callyard/pkg/schema"
)

func FuzzPlainLineReaderMatchesTheFullReader(f *testing.F) {
	for _, line := range []string{
		`{"custom_id":"a","server":"s","tool":"t","arguments":{"n":1}}`,
		` { "tool" : "t" , "server":"s" , "arguments" : { "a" : [ 1 , { "b" : "}\"]" } ] , "c":"\\" } } `,
		`{"server":"s","tool":"t"}`, `{"server":"s","tool":"t","arguments":{}}`, `{"server":"s","tool":"t","arguments":null}`,
		`{"server":"s","tool":"t","arguments":[1]}`, `{"server":"\u0073","tool":"t"}`, `{"s\u0065rver":"s","tool":"t"}`,
		`{"server":"","tool":"t"}`, `{"custom_id":"","server":"s","tool":"t"}`, `{"custom_id":7,"server":"s","tool":"t"}`,
		`{"server":"s","tool":"t","timeout_ms":5}`, `{"server":"s","tool":"t","more":1}`, `{"server":"s","server":"s","tool":"t"}`,
		`{}`, `[]`, `"x"`, `1`, `{`, ``, `{"server":"s","tool":"t"} {}`, "{\"server\":\"s\",\"tool\":\"\xff\"}",
		`{"server":"é","tool":"t","arguments":{"a":1e5,"b":-0.0,"c":true,"d":null,"e":""}}`,
	} {
		f.Add([]byte(line))
	}
	lines := lineReader{admission.Limits{ArgumentBytes: 1 << 12, ArgumentDepth: 8, MaxTimeout: time.Hour}}
	f.Fuzz(func(t *testing.T, raw []byte) {
		quick, ok := lines.readPlainItem(raw)
		if !ok {
			return // readAnyItem handles it
		}
		slow, customID, err := lines.readAnyItem(raw)
		if err != nil || customID != quick.CustomID {
			t.Fatalf("%s was taken, and is refused: %v (%q)", raw, err, customID)
		}
		quick.Accepted, slow.Accepted = time.Time{}, time.Time{}
		if d := cmp.Diff(slow, quick); d != "" {
			t.Fatalf("%s (-slow +quick)\n%s", raw, d)
		}
	})
}

func TestPlainLineIsReadWithoutDecoding(t *testing.T) {
	lines := lineReader{admission.Limits{ArgumentBytes: 1 << 20, ArgumentDepth: 64}}
	line := []byte(`{"custom_id":"line-1","server":"everything","tool":"echo","arguments":{"message":"hello"}}`)
	if n := testing.AllocsPerRun(100, func() {
		if _, ok := lines.readPlainItem(line); !ok {
			t.Fatal("it was not taken")
		}
	}); n > 5 {
		t.Errorf("it takes %v allocations", n)
	}
}

func FuzzResultHeadMatchesEncodingJSON(f *testing.F) {
	f.Add(uint64(0), "", "succeeded", "", 0, "", false, "")
	f.Add(uint64(41), "line <1> & \"2\"\\", "failed", "w\u2028\x7f", 3, "é: \n", true, `{"type":"x","detail":"<>"}`)
	f.Fuzz(func(t *testing.T, index uint64, customID, state, worker string, attempt int, settled string, toolError bool, problem string) {
		h := BatchResult{Index: index, CustomID: customID, CallID: "call_x", State: state, ToolError: toolError, Worker: schema.WorkerID(worker), Attempt: attempt, Settled: settled, Cursor: "1c-5"}
		if json.Valid([]byte(problem)) {
			text := httpapi.Encode(json.RawMessage(problem)) // as the encoder formats it
			h.Problem = text[:len(text)-1]
		}
		want := httpapi.Encode(h)
		if d := cmp.Diff(string(want[:len(want)-1]), string(h.append(nil))); d != "" {
			t.Errorf("(-want +got)\n%s", d)
		}
	})
}
