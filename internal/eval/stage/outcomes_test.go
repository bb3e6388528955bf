package stage

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/eval"
)

// ran writes the files of an execution: calls, and results by custom id.
func ran(t *testing.T, dir, folder string, calls []ExecCall, results map[string]string) {
	t.Helper()
	dir = filepath.Join(dir, folder)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := WriteLines(filepath.Join(dir, CallsFile), calls); err != nil {
		t.Fatal(err)
	}
	var lines strings.Builder
	for _, c := range calls {
		if text, ok := results[c.CustomID]; ok {
			fmt.Fprintf(&lines, "{\"custom_id\":%q,%s}\n", c.CustomID, text)
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, CallsFile))
	if err != nil {
		t.Fatal(err)
	}
	done, err := json.Marshal(Execution{Inputs: eval.Digest(text)})
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{ResultsFile: lines.String(), ExecutionFile: string(done)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

const (
	textA    = `"state":"succeeded","worker":"w","result":{"content":[{"type":"text","text":"a"}],"_meta":{"n":1}}`
	textASay = `"state":"succeeded","worker":"w","result":{"_meta":{"n":2}, "content":[{"text":"a","type":"text"}]}`
	textB    = `"state":"succeeded","worker":"w","result":{"content":[{"type":"text","text":"b"}]}`
	toolFail = `"state":"succeeded","worker":"w","result":{"isError":true,"content":[]}`
	denied   = `"state":"denied","problem":{"type":"/problems/forbidden","title":"Not allowed"}`
	misfit   = `"state":"failed","problem":{"type":"/problems/invalid-arguments"}`
	lost     = `"state":"failed","problem":{"type":"/problems/unavailable"}`
	unknown  = `"state":"unknown","problem":{"type":"/problems/outcome-unknown"}`
)

// execSample returns a sample with the tools a and b, of which a is labelled twice.
func execSample(t *testing.T) ([]Sample, Target) {
	t.Helper()
	return labelled(t, eval.Sample{
		ID: "s", Expected: []string{"a"}, Tools: []eval.Tool{{Name: "a", Server: "x"}, {Name: "b", Server: "x"}},
		Labels: []eval.LabelledCall{{Name: "a", Server: "x", Arguments: []byte(`{"n":1}`)}, {Name: "a", Server: "x", Arguments: []byte(`{"n":2}`)}},
	}), Target{Servers: map[string]string{"x": "files"}, Reset: "files/reset", State: "files/state"}
}

func TestExecutionsAreComparedWithTheLabels(t *testing.T) {
	samples, to := execSample(t)
	answer := []Response{{Response: eval.Response{ID: "s", Text: `<tool_call>{"name":"a","arguments":{"n":1}}</tool_call><tool_call>{"name":"b"}</tool_call><tool_call>{"name":"rm","arguments":{}}</tool_call>`}}}
	labels, err := LabelledCalls(samples, to)
	if err != nil || len(labels) != 4 || labels[0].CustomID != "s#0#reset" || labels[3].Tool != "state" {
		t.Fatalf("%+v, %v", labels, err)
	}
	calls, err := AnswerCalls(samples, answer, to)
	if err != nil || len(calls) != 4 || calls[2].Tool != "b" || calls[2].Server != "files" {
		t.Fatalf("%+v, %v", calls, err)
	}
	reset := func(more map[string]string) map[string]string {
		all := map[string]string{"s#0#reset": textA, "s#0#state": textB, "s#0#0": textA, "s#0#1": textB}
		maps.Copy(all, more)
		return all
	}
	for name, c := range map[string]struct {
		labels, answers map[string]string
		want            string // summary of the execution
	}{
		"all as labelled":     {reset(nil), reset(map[string]string{"s#0#0": textASay}), "ok 2 denied 0 run 0.67 results 1.00 state 1.00"},
		"one result, state":   {reset(nil), reset(map[string]string{"s#0#1": textA, "s#0#state": textA}), "ok 2 denied 0 run 0.67 results 0.50 state 0.00"},
		"denied and an error": {reset(nil), reset(map[string]string{"s#0#0": denied, "s#0#1": toolFail}), "ok 0 denied 1 run 0.00 results 0.00 state 1.00"},
		"invalid arguments":   {reset(nil), reset(map[string]string{"s#0#0": misfit}), "ok 1 denied 0 run 0.33 results 0.50 state 1.00"},
		"unknown":             {reset(nil), reset(map[string]string{"s#0#0": unknown}), "masked unknown: outcome-unknown"},
		"no worker":           {reset(nil), reset(map[string]string{"s#0#1": lost}), "masked failed: unavailable"},
		"reset failed":        {reset(nil), reset(map[string]string{"s#0#reset": toolFail}), "masked the state could not be reset or read"},
		"another worker":      {reset(nil), reset(map[string]string{"s#0#1": strings.Replace(textB, `"w"`, `"v"`, 1)}), "masked another worker took over, and the state was lost"},
		"no label has run":    {nil, reset(nil), "ok 2 denied 0 run 0.67"},
		"the labels are lost": {reset(map[string]string{"s#0#0": lost}), reset(nil), "ok 2 denied 0 run 0.67"},
		"a result is missing": {reset(nil), map[string]string{"s#0#reset": textA}, "masked a call has no result"},
	} {
		dir := t.TempDir()
		if c.labels != nil {
			ran(t, dir, LabelsFolder, labels, c.labels)
		}
		ran(t, dir, AnswersFolder, calls, c.answers)
		outcomes, err := ReadOutcomes(dir)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Run(t.Context(), samples, answer, outcomes, settings(t, MissingError), nil)
		if err != nil || got.Scores[0].Execution == nil {
			t.Fatalf("%s: %+v, %v", name, got, err)
		}
		if e := got.Scores[0].Execution; e.Calls != 3 || e.Refused != 1 || inShort(e) != c.want {
			t.Errorf("%s: %s, want %s", name, inShort(e), c.want)
		}
	}
}

func inShort(e *eval.Execution) string {
	if e.Masked != "" {
		return "masked " + e.Masked
	}
	text := fmt.Sprintf("ok %d denied %d", e.OK, e.Denied)
	for _, share := range []struct {
		name string
		of   *float64
	}{{"run", e.Run}, {"results", e.Results}, {"state", e.State}} {
		if share.of != nil {
			text += fmt.Sprintf(" %s %.2f", share.name, *share.of)
		}
	}
	return text
}

func TestOutcomesOfOtherCallsDoNotCount(t *testing.T) {
	samples, to := execSample(t)
	answer := []Response{{Response: eval.Response{ID: "s", Text: `<tool_call>{"name":"a","arguments":{"n":1}}</tool_call>`}, Digest: "1"}}
	calls, err := AnswerCalls(samples, answer, to)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	score := func(earlier []Score) *Scored {
		outcomes, err := ReadOutcomes(dir)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Run(t.Context(), samples, answer, outcomes, settings(t, MissingError), earlier)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	before := score(nil)
	ran(t, dir, AnswersFolder, calls, map[string]string{"s#0#reset": textA, "s#0#0": textA, "s#0#state": textB})
	after := score(before.Scores)
	if before.Scores[0].Execution != nil || after.Computed != 1 || after.Scores[0].Execution == nil {
		t.Fatalf("%+v, %+v", before, after)
	}
	if again := score(after.Scores); again.Computed != 0 {
		t.Error("the same outcomes are scored again")
	}
	answer[0].Text, answer[0].Digest = strings.Replace(answer[0].Text, "1", "7", 1), "2"
	if other := score(after.Scores); other.Scores[0].Execution != nil {
		t.Error("the results of other calls count")
	}
	answer[0].Text = strings.Replace(answer[0].Text, "7", "1", 1)
	calls[1].Arguments = []byte(`{"n":7}`) // the file of calls is newer than the results
	if err := WriteLines(filepath.Join(dir, AnswersFolder, CallsFile), calls); err != nil {
		t.Fatal(err)
	}
	if other := score(nil); other.Scores[0].Execution != nil {
		t.Error("results of an earlier file of calls count")
	}
}

func TestTau2Verdicts(t *testing.T) {
	state := func(v float64) *eval.Execution { return &eval.Execution{State: &v} }
	check := &eval.Check{Kind: "tau2", Answers: []byte(`["1000","Done"]`)}
	for _, c := range []struct {
		text string
		ran  *eval.Execution
		want *eval.Verdict
	}{
		{"It costs $1,000. DONE.", state(1), &eval.Verdict{Valid: true}},
		{"It costs $1,000.", state(1), &eval.Verdict{Error: tauCommunicate}},
		{"It costs $1,000. Done.", state(0), &eval.Verdict{Error: tauState}},
		{"It costs $1,000. Done.", nil, nil},
		{"It costs $1,000. Done.", &eval.Execution{Masked: "unknown"}, nil},
	} {
		got := tauVerdict(check, &eval.Response{Text: c.text}, c.ran)
		if (got == nil) != (c.want == nil) || got != nil && *got != *c.want {
			t.Errorf("%s: %+v", c.text, got)
		}
	}
}
