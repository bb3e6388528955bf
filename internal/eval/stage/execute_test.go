package stage

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/eval"
)

func labelled(t *testing.T, samples ...eval.Sample) []Sample {
	t.Helper()
	out, err := digested(samples)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestLabelledCallsAreCallsOfABatch(t *testing.T) {
	samples := labelled(t,
		eval.Sample{ID: "a#1", Labels: []eval.LabelledCall{{Name: "read", Server: "filesystem", Arguments: []byte(`{"path":"x"}`)}, {Name: "list"}}, Tools: []eval.Tool{{Name: "list", Server: "other"}}},
		eval.Sample{ID: "b", Labels: []eval.LabelledCall{{Name: "add", Arguments: []byte("null")}}},
	)
	got, err := LabelledCalls(samples, Target{Servers: map[string]string{"filesystem": "files", "": "demo"}})
	want := []ExecCall{{"a#1#0#0", "files", "read", []byte(`{"path":"x"}`)}, {"a#1#0#1", "other", "list", []byte("{}")}, {"b#0#0", "demo", "add", []byte("{}")}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	for id, want := range map[string]string{"a#1#0#0": "a#1", "b#0#0": "b"} {
		if key, _, ok := splitID(id); !ok || key.ID != want {
			t.Errorf("%s is of %q", id, key.ID)
		}
	}
	if _, _, ok := splitID("b#0"); ok {
		t.Error("an id without two numbers has a sample")
	}
	for says, faulty := range map[string][]Sample{
		"names no server": samples, "no sample has a labelled call": labelled(t, eval.Sample{ID: "x"}),
		"too long": labelled(t, eval.Sample{ID: strings.Repeat("x", 250), Labels: []eval.LabelledCall{{Name: "f", Server: "s"}}}),
	} {
		if _, err := LabelledCalls(faulty, Target{}); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", says, err)
		}
	}
}

func TestResultsAreSummedUp(t *testing.T) {
	samples := labelled(t, eval.Sample{ID: "a", Category: "x"}, eval.Sample{ID: "b"})
	calls := []ExecCall{{"a#0#0", "s", "t", nil}, {"a#0#1", "s", "t", nil}, {"a#0#2", "s", "u", nil}, {"b#0#0", "s", "t", nil}, {"b#0#1", "s", "t", nil}, {"b#0#2", "s", "t", nil}}
	path := filepath.Join(t.TempDir(), ResultsFile)
	text := `{"custom_id":"a#0#1","state":"succeeded","result":{"isError":true}}
{"custom_id":"a#0#0","state":"succeeded","result":{"content":[]}}
{"custom_id":"a#0#2","state":"failed","problem":{"title":"Invalid arguments"}}
{"custom_id":"b#0#0","state":"denied"}
{"custom_id":"b#0#1","state":"unknown"}
`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := Executed(samples, calls, "d", path)
	want := &Execution{
		Inputs: "d", Tally: Tally{Calls: 6, Reached: 2, ToolErrors: 1, Denied: 1, Unknown: 1, Missing: 1},
		Categories: map[string]*Tally{"x": {Calls: 3, Reached: 2, ToolErrors: 1}, "all": {Calls: 3, Denied: 1, Unknown: 1, Missing: 1}},
		Tools:      map[string]*Tally{"s/t": {Calls: 5, Reached: 2, ToolErrors: 1, Denied: 1, Unknown: 1, Missing: 1}, "s/u": {Calls: 1}},
		Failures:   map[string]int{"Invalid arguments": 1, "denied": 1, "unknown": 1},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
}

func FuzzQuickResultReaderMatchesEncodingJSON(f *testing.F) {
	for _, line := range []string{
		`{"index":1,"custom_id":"a#0#1","call_id":"c","state":"succeeded","worker":"w","attempt":1,"cursor":"1-1","result":{"content":[],"isError":true}}`,
		`{"custom_id":"\u0061","state":"failed","problem":{"type":"t","title":"x","status":4}}`, `{"state":"a","state":"b","result":{"isError":false}}`,
		`{"result":{"iserror":true}}`, `{"State":"x"}`, `{"result":{"isError":null}}`, `{"result":null}`, "{\"state\":\"\xff\"}", `{"extra":1}`, `{`,
	} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		var quick, slow resultLine
		if !quick.quick(line) {
			return
		}
		if err := json.Unmarshal(line, &slow); err != nil || !reflect.DeepEqual(quick, slow) {
			t.Errorf("%s is %+v, and %+v with encoding/json (%v)", line, quick, slow, err)
		}
	})
}
