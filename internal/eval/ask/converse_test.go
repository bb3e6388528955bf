package ask

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/agent/model"
	"github.com/callyard/callyard/internal/agent/modeltest"
	"github.com/callyard/callyard/internal/eval"
	"github.com/callyard/callyard/internal/eval/stage"
)

// recordingFabric is a fabric that notes what it is told.
type recordingFabric struct {
	ran   []string
	fault error
}

func (f *recordingFabric) Reset(_ context.Context, s *eval.Sample) error {
	f.ran = append(f.ran, "reset "+string(s.State))
	return f.fault
}

func (f *recordingFabric) Call(_ context.Context, _ *eval.Sample, c eval.Call) (string, bool, error) {
	f.ran = append(f.ran, c.Name+string(c.Arguments))
	return "result of " + c.Name, c.Name == "cp", nil
}

func conversations(t *testing.T) []stage.Sample {
	t.Helper()
	samples, err := stage.WriteSamples(filepath.Join(t.TempDir(), "samples.jsonl"), []eval.Sample{{
		ID: "c", Question: "One.", State: json.RawMessage(`{"id":"c"}`), Tools: []eval.Tool{{Name: "ls"}, {Name: "sort"}},
		Messages: json.RawMessage(`[[{"role":"user","content":"One."}],[]]`),
		Check:    &eval.Check{Kind: "bfcl", Category: "multi_turn_miss_func", Turns: 2, Hidden: []string{"cp"}, Later: map[string]int{"sort": 1}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return samples
}

// scripted is a model with a script behind the API of a provider.
func scripted(t *testing.T, spec string, script modeltest.Script) (Options, *modeltest.Server) {
	t.Helper()
	server := modeltest.New(script)
	api := httptest.NewServer(server)
	t.Cleanup(api.Close)
	s, err := model.ParseSpec(spec)
	if err != nil {
		t.Fatal(err)
	}
	c, err := model.Open(s, model.Options{BaseURL: api.URL, HTTP: api.Client(), Getenv: func(string) string { return "key" }})
	if err != nil {
		t.Fatal(err)
	}
	return Options{Model: c, Wire: c.Wire, Name: spec}, server
}

func TestConversationRunsTurnByTurn(t *testing.T) {
	for _, spec := range []string{"openai:m", "responses:m", "anthropic:m", "gemini:m"} {
		o, server := scripted(t, spec, modeltest.Script{
			{Calls: []modeltest.Call{{ID: "a", Name: "ls", Arguments: `{"x":1}`}, {ID: "b", Name: "nothing", Arguments: `{}`}}},
			{Calls: []modeltest.Call{{ID: "c", Name: "cp", Arguments: `{}`}}},
			{Text: "I cannot sort."},
			{Calls: []modeltest.Call{{ID: "d", Name: "sort", Arguments: `{}`}}},
			{Text: "Sorted."},
		})
		fabric := &recordingFabric{}
		o.Fabric = fabric
		path := filepath.Join(t.TempDir(), "responses.jsonl")
		done, err := Run(t.Context(), path, conversations(t), o)
		if err != nil || done.Asked != 1 || done.Fault != nil {
			t.Fatalf("%s: %+v, %v; refused: %v", spec, done, err, server.Refused())
		}
		if want := []string{`reset {"id":"c"}`, `ls{"x":1}`, `cp{}`, `sort{}`}; !slices.Equal(fabric.ran, want) {
			t.Errorf("%s: it ran %q", spec, fabric.ran)
		}
		asked := server.Asked()
		if len(asked) != 5 || slices.Contains(asked[2].Tools, "sort") || !slices.Contains(asked[3].Tools, "sort") || !strings.Contains(string(asked[3].Raw), moreTools) {
			t.Fatalf("%s: %d requests", spec, len(asked))
		}
		if r := asked[1].Results; len(r) != 2 || !strings.Contains(r[0].Text, "result of ls") || !strings.Contains(r[1].Text, "no function") {
			t.Errorf("%s: the results %+v", spec, r)
		}
		all, err := stage.ReadResponses(path)
		if err != nil || len(all) != 1 || len(all[0].Turns) != 2 || len(all[0].Turns[0]) != 3 || len(all[0].Turns[1]) != 2 || all[0].Turns[1][1].Text != "Sorted." {
			t.Fatalf("%s: %+v, %v", spec, all, err)
		}
		if again, err := Run(t.Context(), path, conversations(t), o); err != nil || again.Kept != 1 || len(server.Asked()) != 5 {
			t.Errorf("%s, once more: %+v, %v", spec, again, err)
		}
	}
}

func TestConversationEndsAtTheStepLimit(t *testing.T) {
	o, server := scripted(t, "openai:m", modeltest.Script{{Calls: []modeltest.Call{{ID: "a", Name: "ls", Arguments: `{}`}}}})
	o.Fabric = &recordingFabric{}
	path := filepath.Join(t.TempDir(), "responses.jsonl")
	if done, err := Run(t.Context(), path, conversations(t), o); err != nil || done.Asked != 1 || len(server.Asked()) != maxSteps {
		t.Fatalf("%+v, %v, %d requests", done, err, len(server.Asked()))
	}
	if all, err := stage.ReadResponses(path); err != nil || len(all[0].Turns) != 1 {
		t.Errorf("%+v, %v", all, err)
	}
}

func TestAConversationNeedsAFabric(t *testing.T) {
	o, server := scripted(t, "openai:m", modeltest.Script{{Text: "x"}})
	path := filepath.Join(t.TempDir(), "responses.jsonl")
	if _, err := Run(t.Context(), path, conversations(t), o); err == nil || !strings.Contains(err.Error(), "resets its state") {
		t.Errorf("without a fabric: %v", err)
	}
	o.Fabric = &recordingFabric{fault: errors.New("gone")}
	done, err := Run(t.Context(), path, conversations(t), o)
	if err != nil || done.Failed != 1 || !strings.Contains(fmt.Sprint(done.Fault), "resetting the state: gone") || len(server.Asked()) != 0 {
		t.Errorf("a state that cannot be reset: %+v, %v", done, err)
	}
}

func TestConversationRunsInTextMode(t *testing.T) {
	for _, spec := range []string{"openai:m", "anthropic:m"} {
		o, server := scripted(t, spec, modeltest.Script{
			{Text: "First.\n<tool_call>\n{\"name\": \"ls\", \"arguments\": {\"x\": 1}}\n</tool_call>\n<tool_call>{\"name\":\"nothing\",\"arguments\":{}}</tool_call>"},
			{Text: "```json\n{\"name\": \"ls\", \"arguments\": {\"x\": 2}}\n```"}, // only lenient reading finds it
			{Text: "I cannot sort."},
			{Text: `<tool_call>{"name":"sort","arguments":{}}</tool_call>`},
			{Text: "Sorted."},
		})
		fabric := &recordingFabric{}
		o.Fabric, o.Text = fabric, true
		path := filepath.Join(t.TempDir(), "responses.jsonl")
		done, err := Run(t.Context(), path, conversations(t), o)
		if err != nil || done.Asked != 1 || done.Fault != nil {
			t.Fatalf("%s: %+v, %v; refused: %v", spec, done, err, server.Refused())
		}
		if want := []string{`reset {"id":"c"}`, `ls{"x": 1}`, `ls{"x": 2}`, `sort{}`}; !slices.Equal(fabric.ran, want) {
			t.Errorf("%s: it ran %q", spec, fabric.ran)
		}
		asked := server.Asked()
		if len(asked) != 5 || len(asked[0].Tools) != 0 || !strings.Contains(asked[0].System, `{"name":"ls"}`) || strings.Contains(asked[2].System, `"sort"`) || !strings.Contains(asked[3].System, `{"name":"sort"}`) {
			t.Fatalf("%s: %d requests; the first has the instructions %s", spec, len(asked), asked[0].System)
		}
		if raw := string(asked[1].Raw); !strings.Contains(raw, `result of ls`) || !strings.Contains(raw, `tool_response`) || !strings.Contains(raw, "no function") {
			t.Errorf("%s: the results are not in %s", spec, raw)
		}
		all, err := stage.ReadResponses(path)
		if err != nil || len(all) != 1 || len(all[0].Turns) != 2 || len(all[0].Turns[0]) != 3 || all[0].Turns[0][0].Message != nil {
			t.Fatalf("%s: %+v, %v", spec, all, err)
		}
		// Each call is found in its turn, at the level that finds it.
		names := eval.NewNames(conversations(t)[0].Tools)
		x := eval.Extract(&all[0].Response, conversations(t)[0].Tools, names)
		if len(x.Calls) != 3 || len(x.Rescued) != 4 || x.Rescued[3].Name != "sort" || x.Rescued[3].Turn != 1 {
			t.Errorf("%s: the calls are %+v, lenient %+v", spec, x.Calls, x.Rescued)
		}
		o.Text = false
		if _, err := Run(t.Context(), path, conversations(t), o); err == nil || !strings.Contains(err.Error(), "other settings") {
			t.Errorf("%s: the same file with calls of the API: %v", spec, err)
		}
	}
}
