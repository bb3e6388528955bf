package dataset

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/eval"
)

const turnsQuestion = `{"id":"multi_turn_miss_func_0","question":[[{"role":"user","content":"Q"}],[]],"initial_config":{"MathAPI":{"b":1,"a":2},"Other":{}},"involved_classes":["MathAPI"],"missed_function":{"1":["mean"]},"excluded_function":["round"]}`

const turnsLabels = `{"id":"multi_turn_miss_func_0","ground_truth":[["add(1, b=2.50)"],["mean([1, 'it\\'s'], weights={\"a\": None},)"]]}`

const turnsFunctions = `{"name":"add","description":"d","parameters":{"type":"dict","properties":{"a":{"type":"float"},"b":{"type":"float"}}}}
{"name":"mean","parameters":{"type":"dict","properties":{"numbers":{"type":"array"},"weights":{"type":"dict"}}}}
{"name":"round","parameters":{"type":"dict","properties":{}}}
`

func TestConversationsOfBFCLAreRead(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "BFCL_v4_multi_turn_miss_func.json"), turnsQuestion)
	labels := write(t, filepath.Join(dir, "possible_answer", "BFCL_v4_multi_turn_miss_func.json"), turnsLabels)
	for _, name := range bfclClasses {
		write(t, filepath.Join(dir, "multi_turn_func_doc", name+".json"), "")
	}
	write(t, filepath.Join(dir, "multi_turn_func_doc", "math_api.json"), turnsFunctions)
	o := Options{Sets: []string{"multi_turn_miss_func"}}
	got, err := Read("bfcl:"+dir, o)
	if err != nil || len(got) != 1 {
		t.Fatal(got, err)
	}
	s := got[0]
	if s.Question != "Q" || len(s.Tools) != 2 || s.Check.Turns != 2 || len(s.Check.Hidden) != 1 || s.Check.Later["mean"] != 1 {
		t.Errorf("%+v, %+v", s, s.Check)
	}
	if string(s.State) != `{"id":"multi_turn_miss_func_0","initial_config":{"MathAPI":{"b":1,"a":2}},"involved_classes":["MathAPI"],"long_context":false}` {
		t.Errorf("%s", s.State)
	}
	if len(s.Labels) != 2 || string(s.Labels[0].Arguments) != `{"a":1,"b":2.50}` || s.Labels[1].Turn != 1 || string(s.Labels[1].Arguments) != `{"numbers":[1,"it's"],"weights":{"a":null}}` {
		t.Errorf("%+v", s.Labels)
	}
	for _, c := range []struct{ label, says string }{
		{"sub(1)", `no involved class has the function "sub"`}, {"add(1, 2, 3)", "3 arguments without a name"}, {"add(1, a=2)", "occurs twice"}, {"add(b)", "no literal"},
	} {
		write(t, labels, strings.Replace(turnsLabels, "add(1, b=2.50)", c.label, 1))
		if _, err := Read("bfcl:"+dir, o); err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), labels+":1:1") {
			t.Errorf("%s: %v", c.label, err)
		}
	}
	write(t, labels, `{"id":"other","ground_truth":[[]]}`)
	if _, err := Read("bfcl:"+dir, o); err == nil || !strings.Contains(err.Error(), "has no possible answer") {
		t.Error(err)
	}
}

func TestCallsInPythonAreRead(t *testing.T) {
	for text, want := range map[string]string{
		`f()`: `{}`, `f( a = True , b=[ ] )`: `{"a":true,"b":[]}`, `f(a="\x41\u00e9\n\d")`: `{"a":"Aé\n\\d"}`, `f(a={'k': {'l': [1, -2.0e3]}})`: `{"a":{"k":{"l":[1,-2.0e3]}}}`,
		`f(1, "x",)`: `{"p":1,"q":"x"}`,
		`f`:          "", `f(`: "", `f(a=1 b=2)`: "", `f(a=1, 2)`: "", `f(a='x)`: "", `f(a=g())`: "", `f(a=1) x`: "", `f(a=01)`: "", `f(a={1: 2})`: "", `f(a=(1, 2))`: "",
		`f(a=` + strings.Repeat("[", 1000): "",
	} {
		_, arguments, err := pythonCall(text)
		if err != nil {
			if want != "" {
				t.Errorf("%s: %v", text, err)
			}
			continue
		}
		if got, err := asObject(arguments, []string{"p", "q"}); err != nil || string(got) != want {
			t.Errorf("%s is %s, %v; want %q", text, got, err, want)
		}
	}
}

func FuzzACallInPythonHasArgumentsInJSON(f *testing.F) {
	f.Add(`f(1, a="x", b=[True, None, {'k': -1.5e3}])`)
	f.Add(`cd(folder='\x41\'')`)
	f.Fuzz(func(t *testing.T, text string) {
		name, arguments, err := pythonCall(text)
		if err != nil {
			return
		}
		raw, err := asObject(arguments, []string{"p", "q", "r"})
		if name == "" || err == nil && !json.Valid(raw) {
			t.Errorf("%q is %s(%s)", text, name, raw)
		}
	})
}

func FuzzConversationsAreReadOrErrorHasAPosition(f *testing.F) {
	f.Add(turnsQuestion, turnsLabels)
	f.Add(turnsQuestion, `{"id":"multi_turn_miss_func_0","ground_truth":[["add(1, 2"]]}`)
	f.Fuzz(func(t *testing.T, questions, labels string) {
		functions := map[string]*source{"MathAPI": {"f", []byte(turnsFunctions)}}
		samples, err := turnsSet("multi_turn_miss_func", &source{"q", []byte(questions)}, &source{"l", []byte(labels)}, functions, 0)
		if err != nil && !strings.Contains(err.Error(), ":") {
			t.Errorf("%v", err)
		}
		for _, s := range samples {
			for _, label := range s.Labels {
				if label.Turn < 0 || label.Turn >= s.Check.Turns || !json.Valid(label.Arguments) {
					t.Errorf("%+v", label)
				}
			}
		}
	})
}

func TestAConversationHasItsQuestionsInTurns(t *testing.T) {
	read := func(text string) ([]eval.Sample, error) {
		return linesOf(&source{"f", []byte(text)}, Options{})
	}
	samples, err := read(`{"id":"1","tools":["a","b"],"turns":[{"question":"One.","target_tools":"a"},{"question":"Two.","target_tools":[]},{"question":"Three.","target_tools":"b, a"}]}`)
	if err != nil || len(samples) != 1 {
		t.Fatal(samples, err)
	}
	s := samples[0]
	if !s.Converses() || s.Question != "One." || !slices.Equal(s.Expected, []string{"a", "b"}) || len(s.Turns) != 3 || len(s.Turns[1].Expected) != 0 || !slices.Equal(s.Turns[2].Expected, []string{"b", "a"}) {
		t.Errorf("%+v", s)
	}
	if want := `[[{"role":"user","content":"One."}],[{"role":"user","content":"Two."}],[{"role":"user","content":"Three."}]]`; string(s.Messages) != want {
		t.Errorf("the messages %s", s.Messages)
	}
	for text, want := range map[string]string{
		`{"turns":[{"question":"One.","target_tools":"a"},{"target_tools":"a"}]}`: "turn 2 has no question",
		`{"turns":[{"question":"One."}]}`:                                         "target_tools of turn 1: it is missing",
		`{"question":"One.","turns":[{"question":"One.","target_tools":"a"}]}`:    "in its turns",
		`{"turns":[{"question":"One.","target_tools":"a"}],"target_tools":"a"}`:   "in its turns",
		`{"turns":"none","question":"One.","target_tools":"a"}`:                   "turns",
	} {
		if _, err := read(text); err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "f:1:") {
			t.Errorf("%s: %v", text, err)
		}
	}
}
