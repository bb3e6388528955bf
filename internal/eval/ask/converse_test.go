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

// tape is a fabric that notes what it is told.
type tape struct {
	ran   []string
	fault error
}

func (f *tape) Reset(_ context.Context, s *eval.Sample) error {
	f.ran = append(f.ran, "reset "+string(s.State))
	return f.fault
}

func (f *tape) Call(_ context.Context, _ *eval.Sample, c eval.Call) (string, bool, error) {
	f.ran = append(f.ran, c.Name+string(c.Arguments))
	return "result of " + c.Name, c.Name == "cp", nil
}

func conversations(t *testing.T) []stage.Sample {
	t.Helper()
	samples, err := stage.Digested([]eval.Sample{{
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

func TestAConversationIsLedTurnByTurn(t *testing.T) {
	for _, spec := range []string{"openai:m", "responses:m", "anthropic:m", "gemini:m"} {
		o, server := scripted(t, spec, modeltest.Script{
			{Calls: []modeltest.Call{{ID: "a", Name: "ls", Arguments: `{"x":1}`}, {ID: "b", Name: "nothing", Arguments: `{}`}}},
			{Calls: []modeltest.Call{{ID: "c", Name: "cp", Arguments: `{}`}}},
			{Text: "I cannot sort."},
			{Calls: []modeltest.Call{{ID: "d", Name: "sort", Arguments: `{}`}}},
			{Text: "Sorted."},
		})
		fabric := &tape{}
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

func TestAConversationEndsWithTooManySteps(t *testing.T) {
	o, server := scripted(t, "openai:m", modeltest.Script{{Calls: []modeltest.Call{{ID: "a", Name: "ls", Arguments: `{}`}}}})
	o.Fabric = &tape{}
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
	o.Fabric = &tape{fault: errors.New("gone")}
	done, err := Run(t.Context(), path, conversations(t), o)
	if err != nil || done.Failed != 1 || !strings.Contains(fmt.Sprint(done.Fault), "resetting the state: gone") || len(server.Asked()) != 0 {
		t.Errorf("a state that cannot be reset: %+v, %v", done, err)
	}
}
