package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/callyard/callyard/internal/agent"
	"github.com/callyard/callyard/internal/agent/model"
	"github.com/callyard/callyard/internal/agent/modeltest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fabric is a fake Callyard whose tools record the calls that ran.
type fabric struct {
	wire     model.Wire
	tools    []string
	ran      map[string]int    // number of runs by idempotency key and index of the call
	held     map[string]string // state by tool name: held, late, people, unwanted, approved, denied
	queries  []string
	sent     int
	crash    int // number of the request to Run that gets no response, from 1; 0 means none
	requests int
}

func (f *fabric) Tools(_ context.Context, query string, budget int) (*agent.ToolList, error) {
	f.queries = append(f.queries, fmt.Sprintf("%s/%d", query, budget))
	list := &agent.ToolList{}
	var all []model.Definition
	for _, name := range f.tools {
		if query != "" && !strings.Contains(query, strings.TrimPrefix(name, "s__")) {
			continue
		}
		all = append(all, model.Definition{Name: name, Raw: definition(f.wire, name)})
		list.Names = append(list.Names, agent.ToolName{Name: name, Server: "s", Tool: strings.TrimPrefix(name, "s__")})
	}
	list.Tools = f.wire.Tools(all)
	return list, nil
}

func definition(w model.Wire, name string) json.RawMessage {
	const schema = `{"type":"object"}`
	switch w.Format() {
	case "openai":
		return json.RawMessage(`{"type":"function","function":{"name":"` + name + `","parameters":` + schema + `}}`)
	case "openai-responses":
		return json.RawMessage(`{"type":"function","name":"` + name + `","parameters":` + schema + `}`)
	case "gemini":
		return json.RawMessage(`{"name":"` + name + `","parameters":` + schema + `}`)
	}
	return json.RawMessage(`{"name":"` + name + `","input_schema":` + schema + `}`)
}

func (f *fabric) Run(_ context.Context, key string, body json.RawMessage, own []string) (*agent.Results, error) {
	f.requests++
	var text struct{ Text string }
	if json.Unmarshal(body, &text) == nil && text.Text != "" {
		f.sent++
		return &agent.Results{Messages: []json.RawMessage{f.wire.User("<tool_response>done</tool_response>")}, Calls: []agent.CallResult{{Name: "s__one", State: "succeeded"}}}, nil
	}
	answer, err := f.wire.Read(body)
	if err != nil {
		return nil, err
	}
	results := &agent.Results{}
	for i, c := range answer.Calls {
		if slices.Contains(own, c.Name) {
			continue
		}
		r := agent.CallResult{ID: c.ID, Name: c.Name, Server: "s", CallID: fmt.Sprintf("call_%s_%d", key, i), State: "succeeded"}
		text := "done"
		switch f.held[c.Name] {
		case "held", "late":
			r.State, text = "held", "waiting"
			r.Confirmation = &agent.Confirmation{ID: c.Name, Risk: 2}
		case "people", "unwanted":
			r.State, text = "held", "waiting"
			r.Confirmation = &agent.Confirmation{People: true, Risk: 2}
		case "denied":
			r.State, text = "failed", "denied"
			r.Problem = &agent.Problem{Type: "/problems/forbidden", Detail: "It was denied."}
		default:
			if f.ran[fmt.Sprintf("%s#%d", key, i)] == 0 {
				f.ran[fmt.Sprintf("%s#%d", key, i)]++
				f.sent++
			}
		}
		results.Calls = append(results.Calls, r)
		results.Messages = append(results.Messages, f.wire.Result(c, text, r.State == "failed"))
	}
	results.Messages = f.wire.Join(results.Messages)
	if f.requests == f.crash {
		return nil, fmt.Errorf("the process was killed")
	}
	return results, nil
}

func (f *fabric) Decide(_ context.Context, confirmation string, approve bool) error {
	if f.held[confirmation] == "late" {
		return errors.New("the confirmation has expired")
	}
	f.held[confirmation] = map[bool]string{true: "approved", false: "denied"}[approve]
	return nil
}

func (f *fabric) Await(_ context.Context, call string, _ time.Duration) (string, error) {
	for name, state := range f.held {
		if to := map[string]string{"people": "approved", "unwanted": "denied", "late": "denied"}[state]; to != "" {
			f.held[name] = to
		}
	}
	return "running", nil
}

// person makes the same decision every time.
type person struct {
	text     strings.Builder
	decision agent.Decision
	comment  string
	asked    []agent.Held
}

func (p *person) Text(piece string)        { p.text.WriteString(piece) }
func (p *person) Restart()                 { p.text.Reset() }
func (p *person) Calls([]model.Call)       {}
func (p *person) Results(r *agent.Results) {}
func (p *person) Decide(_ context.Context, h agent.Held) (agent.Decision, string, error) {
	p.asked = append(p.asked, h)
	return p.decision, p.comment, nil
}

// testAgent is an agent with fakes of its dependencies.
type testAgent struct {
	*agent.Agent
	server *modeltest.Server
	fabric *fabric
	person *person
	dir    string
}

var specs = []string{"openai:m", "responses:m", "anthropic:m", "gemini:m"}

func newTestAgent(t *testing.T, spec string, script modeltest.Script, tools ...string) *testAgent {
	t.Helper()
	s := &testAgent{server: modeltest.New(script), person: &person{}, dir: t.TempDir()}
	api := httptest.NewServer(s.server)
	t.Cleanup(api.Close)
	parsed, err := model.ParseSpec(spec)
	if err != nil {
		t.Fatal(err)
	}
	client, err := model.Open(parsed, model.Options{BaseURL: api.URL, Getenv: func(string) string { return "" }, HTTP: api.Client()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(api.Client().CloseIdleConnections)
	s.fabric = &fabric{wire: client.Wire, tools: tools, ran: map[string]int{}, held: map[string]string{}}
	transcript, err := agent.NewTranscript(s.dir+string(filepath.Separator), spec)
	if err != nil {
		t.Fatal(err)
	}
	s.Agent = &agent.Agent{Model: client, Wire: client.Wire, Fabric: s.fabric, Person: s.person, Tools: &agent.Tools{}, Transcript: transcript, System: "Be brief.", Stream: true}
	t.Cleanup(func() { _ = s.Transcript.Close() })
	return s
}

// reopen continues the session like another process.
func (s *testAgent) reopen(t *testing.T) {
	t.Helper()
	path := s.Transcript.Path()
	_ = s.Transcript.Close()
	var err error
	if s.Transcript, err = agent.OpenTranscript(path); err != nil {
		t.Fatal(err)
	}
	s.Agent = &agent.Agent{Model: s.Model, Wire: s.Wire, Fabric: s.fabric, Person: s.person, Tools: &agent.Tools{}, Transcript: s.Transcript, System: s.System, Stream: s.Stream}
}

// conversation is a random script with calls, thoughts and texts.
func conversation(r *rand.Rand) (script modeltest.Script, calls int) {
	texts := []string{"", "I look.", "Grüße & <b>“quotes”</b> 🌍", strings.Repeat("long ", 40)}
	arguments := []string{"{}", `{"a":1,"b":[true,null,"x\"y"]}`, `{"n":12345678901234567890,"f":1.50}`, `{"text":"` + strings.Repeat("é🌍", 30) + `"}`}
	id := 0
	for range 1 + r.IntN(4) {
		t := modeltest.Turn{Text: texts[r.IntN(len(texts))], Piece: 1 + r.IntN(20)}
		if r.IntN(2) == 0 {
			t.Thought = "Let me think about <that>."
		}
		for range 1 + r.IntN(3) {
			t.Calls = append(t.Calls, modeltest.Call{ID: fmt.Sprintf("toolu_%d", id), Name: []string{"s__one", "s__two"}[r.IntN(2)], Arguments: arguments[r.IntN(len(arguments))]})
			id++
		}
		if r.IntN(6) == 0 {
			t.Quirk = modeltest.CutStream
		}
		script, calls = append(script, t), calls+len(t.Calls)
	}
	return append(script, modeltest.Turn{Text: "The end.", Thought: "Done."}), calls
}

func TestConversationsCompleteWithEveryProviderAPI(t *testing.T) {
	seeds := uint64(30)
	if testing.Short() {
		seeds = 5
	}
	for _, spec := range specs {
		for _, stream := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s streamed %t", spec, stream), func(t *testing.T) {
				for seed := range seeds {
					script, calls := conversation(rand.New(rand.NewPCG(seed, 21)))
					s := newTestAgent(t, spec, script, "s__one", "s__two")
					s.Stream = stream
					report, err := s.Ask(t.Context(), "Do it.")
					if err != nil {
						t.Fatalf("seed %d: %v; refused: %v", seed, err, s.server.Refused())
					}
					if len(s.server.Refused()) > 0 {
						t.Fatalf("seed %d: refused: %v", seed, s.server.Refused())
					}
					if report.Answer != "The end." || report.Stop != agent.Answered || len(report.Calls) != calls || s.fabric.sent != calls || report.Steps != len(script) {
						t.Fatalf("seed %d: %+v; %d of %d calls ran", seed, report, s.fabric.sent, calls)
					}
					if want := int64(100 * len(script)); report.Usage.Input != want || !report.Usage.Reported {
						t.Fatalf("seed %d: the usage is %+v, want %d", seed, report.Usage, want)
					}
				}
			})
		}
	}
}

// TestAKilledSessionRunsNothingTwice ends a session at each request to Callyard, after the
// calls ran, and continues it from the transcript.
func TestAKilledSessionRunsNothingTwice(t *testing.T) {
	for _, spec := range specs {
		for at := 1; at <= 3; at++ {
			script := modeltest.Script{}
			for i := range 3 {
				script = append(script, modeltest.Turn{Calls: []modeltest.Call{{ID: fmt.Sprintf("a%d", i), Name: "s__one", Arguments: fmt.Sprintf(`{"n":%d}`, i)}, {ID: fmt.Sprintf("b%d", i), Name: "s__two", Arguments: "{}"}}})
			}
			script = append(script, modeltest.Turn{Text: "The end."})
			s := newTestAgent(t, spec, script, "s__one", "s__two")
			s.fabric.crash = at
			if _, err := s.Ask(t.Context(), "Do it."); err == nil {
				t.Fatal("the session was not killed")
			}
			// Simulate a kill during a write.
			text, err := os.ReadFile(s.Transcript.Path())
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(s.Transcript.Path(), append(text, `{"type":"results","tur`...), 0o600); err != nil {
				t.Fatal(err)
			}
			s.reopen(t)
			if !s.Transcript.Interrupted() {
				t.Fatal("the transcript does not say that calls have no results")
			}
			report, err := s.Ask(t.Context(), "")
			if err != nil || report.Answer != "The end." {
				t.Fatalf("%s, killed at %d: %+v, %v; %v", spec, at, report, err, s.server.Refused())
			}
			if s.fabric.sent != 6 {
				t.Errorf("%s, killed at %d: %d calls ran, not 6", spec, at, s.fabric.sent)
			}
		}
	}
}

func TestHeldCallsAreDecidedAwaitedOrLeftHeld(t *testing.T) {
	script := modeltest.Script{{Calls: []modeltest.Call{{ID: "a", Name: "s__risky", Arguments: `{"path":"/x"}`}}}, {Text: "The end."}}
	for name, c := range map[string]struct {
		held     string
		decision agent.Decision
		stop     agent.Stop
		state    string
		by       string
	}{
		"approved": {"held", agent.Approve, agent.Answered, "succeeded", "caller"}, "denied": {"held", agent.Deny, agent.Answered, "denied", ""},
		"left": {"held", agent.Leave, agent.HeldCall, "held", ""}, "left to people": {"people", agent.Leave, agent.HeldCall, "held", ""},
		"approved too late": {"late", agent.Approve, agent.Answered, "failed", ""},
		"waited for":        {"people", agent.Wait, agent.Answered, "succeeded", "approvers"}, "denied by people": {"unwanted", agent.Wait, agent.Answered, "failed", ""},
	} {
		s := newTestAgent(t, "anthropic:m", script, "s__risky")
		s.fabric.held["s__risky"], s.person.decision, s.person.comment = c.held, c.decision, "use /y"
		report, err := s.Ask(t.Context(), "Do it.")
		if err != nil || report.Stop != c.stop || len(report.Calls) != 1 || report.Calls[0].State != c.state || report.Calls[0].ConfirmedBy != c.by {
			t.Errorf("%s: %+v, %v", name, report, err)
			continue
		}
		if len(s.person.asked) != 1 || string(s.person.asked[0].Arguments) != `{"path":"/x"}` {
			t.Errorf("%s: the person was asked %+v", name, s.person.asked)
		}
		asked := s.server.Asked()
		if denied := strings.Contains(string(asked[len(asked)-1].Raw), "use /y"); denied != (c.decision == agent.Deny) {
			t.Errorf("%s: whether the model was told the comment: %t", name, denied)
		}
		if c.stop != agent.HeldCall {
			continue
		}
		s.fabric.held["s__risky"] = "approved" // approved in the meantime
		s.reopen(t)
		if report, err = s.Ask(t.Context(), ""); err != nil || report.Answer != "The end." || s.fabric.sent != 1 {
			t.Errorf("%s, resumed: %+v, %v", name, report, err)
		}
	}
}

func TestASpentBudgetEndsASession(t *testing.T) {
	again := modeltest.Script{{Calls: []modeltest.Call{{ID: "a", Name: "s__one", Arguments: "{}"}}}}
	for name, limits := range map[string]agent.Limits{
		"--max-steps": {Steps: 2}, "--max-calls": {Calls: 2}, "--max-tokens": {Tokens: 150}, "--max-repeat": {Repeats: 2}, "--time": {Time: time.Nanosecond},
		"--max-cost": {Cost: 0.0001, Prices: &agent.Prices{Input: 1, Output: 1}},
	} {
		s := newTestAgent(t, "openai:m", again, "s__one")
		s.Limits = limits
		report, err := s.Ask(t.Context(), "Do it.")
		if err != nil || report.Stop != agent.Budget || !strings.Contains(report.Reason, name) || s.fabric.sent > 2 {
			t.Errorf("%s: %+v, %v; %d calls", name, report, err, s.fabric.sent)
		}
	}
}

func TestToolsOmittedByBudgetAreSearchable(t *testing.T) {
	var tools []string
	for i := range 500 {
		tools = append(tools, fmt.Sprintf("s__tool%d_%s", i, strings.Repeat("x", 20)))
	}
	tools = append(tools, "s__rain")
	for _, spec := range specs {
		s := newTestAgent(t, spec, modeltest.Script{
			{Calls: []modeltest.Call{{ID: "f", Name: "find_tools", Arguments: `{"query":"rain"}`}, {ID: "g", Name: "s__rain", Arguments: "{}"}}},
			{Calls: []modeltest.Call{{ID: "r", Name: "s__rain", Arguments: "{}"}}},
			{Text: "The end."},
		}, tools...)
		s.Tools.Budget = 8000
		report, err := s.Ask(t.Context(), "Will it be wet?")
		if err != nil || report.Answer != "The end." || len(s.server.Refused()) > 0 {
			t.Fatalf("%s: %+v, %v, %v", spec, report, err, s.server.Refused())
		}
		asked := s.server.Asked()
		if got := asked[0].Tools; len(got) != 1 || got[0] != "find_tools" {
			t.Errorf("%s: the first tools are %v", spec, got)
		}
		if got := asked[1].Tools; len(got) != 2 || got[1] != "s__rain" {
			t.Errorf("%s: after a search the tools are %v", spec, got)
		}
		if report.Calls[1].State != "refused" || s.fabric.sent != 1 {
			t.Errorf("%s: a tool that was not shown: %+v; %d calls ran", spec, report.Calls, s.fabric.sent)
		}
	}
}

func TestToolsAreSelectedByPatterns(t *testing.T) {
	s := newTestAgent(t, "gemini:m", modeltest.Script{{Text: "The end."}}, "s__one", "s__two", "s__three")
	s.Tools.Allow, s.Tools.Deny = []string{"s/t*", "s__one"}, []string{"s/two"}
	if _, err := s.Ask(t.Context(), "Hello."); err != nil {
		t.Fatal(err)
	}
	if got := s.server.Asked()[0].Tools; len(got) != 2 || got[0] != "s__one" || got[1] != "s__three" {
		t.Errorf("the tools are %v", got)
	}
}

func TestAForkIsIndependent(t *testing.T) {
	s := newTestAgent(t, "responses:m", modeltest.Script{{Text: "One."}, {Text: "Two."}, {Text: "Three."}})
	if _, err := s.Ask(t.Context(), "First."); err != nil {
		t.Fatal(err)
	}
	fork, err := s.Transcript.Fork()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = fork.Close() }()
	if _, err := s.Ask(t.Context(), "Second."); err != nil {
		t.Fatal(err)
	}
	if fork.ID == s.Transcript.ID || len(fork.Messages()) != 2 || len(s.Transcript.Messages()) != 4 {
		t.Errorf("the fork has %d messages, the session %d", len(fork.Messages()), len(s.Transcript.Messages()))
	}
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(fork.Path(), old, old); err != nil {
		t.Fatal(err)
	}
	if latest, err := agent.Latest(s.dir); err != nil || latest != s.Transcript.Path() {
		t.Errorf("the latest session is %s, %v", latest, err)
	}
	if _, err := agent.OpenTranscript(fork.Path()); err == nil {
		t.Error("a session is open twice")
	}
}

func TestModelWithoutToolSupportWritesCallsAsJSON(t *testing.T) {
	for _, spec := range specs {
		s := newTestAgent(t, spec, modeltest.Script{
			{Text: "{\"tool_call\": {\"server_id\": \"s\", \"tool_name\": \"one\", \"parameters\": {\"a\": {\"b\": 1}}}, \"response\": \"I look.\"}"},
			{Text: `{"tool_call": null, "response": "It is {1}."}`},
		}, "s__one")
		s.Plain = true
		report, err := s.Ask(t.Context(), "Do it.")
		if err != nil || report.Answer != "It is {1}." || len(report.Calls) != 1 || s.person.text.String() != "I look.It is {1}." {
			t.Errorf("%s: %+v, %v, %q; %v", spec, report, err, s.person.text.String(), s.server.Refused())
		}
		if asked := s.server.Asked(); len(asked[0].Tools) != 0 || !strings.Contains(asked[0].System, `"server_id":"s","tool_name":"one"`) {
			t.Errorf("%s: the instructions are %q with the tools %v", spec, asked[0].System, asked[0].Tools)
		}
	}
}
