package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/callyard/callyard/internal/agent/modeltest"
	"github.com/callyard/callyard/pkg/worker"
)

// testFabric is a whole Callyard in this process, and a model that follows a script.
type testFabric struct {
	url string
	mu  sync.Mutex
	ran []string // recorded by the tools
}

func openTestFabric(t *testing.T) *testFabric {
	t.Helper()
	y := &testFabric{}
	s := worker.NewServer("notes")
	type note struct {
		Text string `json:"text"`
	}
	record := func(tool string) func(context.Context, note) (string, error) {
		return func(_ context.Context, n note) (string, error) {
			y.mu.Lock()
			defer y.mu.Unlock()
			y.ran = append(y.ran, tool+" "+n.Text)
			if n.Text == "fault" {
				return "", errors.New("the disk is full")
			}
			return "noted " + n.Text, nil
		}
	}
	worker.Tool(s, "read", "Reads a note.", record("read"), worker.ReadOnly())
	worker.Tool(s, "delete", "Deletes a note.", record("delete"), worker.Destructive())
	policy := filepath.Join(t.TempDir(), "policy.yaml")
	text := "rules:\n  - {name: reading, match: {server: notes, tool: read}, level: 1}\n  - {name: deleting, match: {server: notes, tool: delete}, level: 2}\n"
	if err := os.WriteFile(policy, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := worker.Local(s, worker.LocalPolicy(policy))
	if err != nil {
		t.Fatal(err)
	}
	door := httptest.NewServer(f.Handler())
	t.Cleanup(func() { door.Close(); _ = f.Close() })
	y.url = door.URL
	return y
}

// agentRun runs callyard agent and returns its output and exit code.
func (y *testFabric) agentRun(t *testing.T, script modeltest.Script, args ...string) (out, notes string, code int, server *modeltest.Server) {
	t.Helper()
	server = modeltest.New(script)
	api := httptest.NewServer(server)
	defer api.Close()
	var stdout, stderr bytes.Buffer
	root := rootCommand()
	root.SetArgs(append([]string{"agent", "--url", y.url, "--model", "anthropic:test", "--base-url", api.URL, "--transcript", filepath.Join(t.TempDir(), "t.jsonl")}, args...))
	root.SetOut(&stdout)
	root.SetErr(&stderr)
	root.SetIn(strings.NewReader(""))
	err := root.ExecuteContext(t.Context())
	showError(&stderr, err)
	return stdout.String(), stderr.String(), exitCode(err), server
}

func calls(names ...string) modeltest.Turn {
	var t modeltest.Turn
	for i, n := range names {
		tool, text, _ := strings.Cut(n, " ")
		t.Calls = append(t.Calls, modeltest.Call{ID: "toolu_" + string(rune('a'+i)), Name: "notes__" + tool, Arguments: `{"text":"` + text + `"}`})
	}
	return t
}

func TestAgentReportsItsOutcome(t *testing.T) {
	y := openTestFabric(t)
	end := modeltest.Turn{Text: "It is done."}
	for name, c := range map[string]struct {
		script modeltest.Script
		args   []string
		code   int
		ran    string
	}{
		"answered":           {modeltest.Script{calls("read a", "read b"), end}, nil, 0, "read a,read b"},
		"an error of a tool": {modeltest.Script{calls("read fault"), end}, nil, 0, "read fault"},
		"denied":             {modeltest.Script{calls("delete a"), end}, nil, exitRefused, ""},
		"not shown":          {modeltest.Script{calls("delete a"), end}, []string{"--not-tools", "notes/delete"}, exitRefused, ""},
		"a spent budget":     {modeltest.Script{calls("read a")}, []string{"--max-steps", "2"}, exitBudget, "read a,read a"},
		"no answer":          {modeltest.Script{{Text: "It is", Stop: "max_tokens"}}, nil, exitToolError, ""},
		"no model":           {modeltest.Script{{Fault: &modeltest.Fault{Status: 400, Type: "invalid_request_error"}}}, nil, exitUnreachable, ""},
	} {
		y.ran = nil
		out, notes, code, server := y.agentRun(t, c.script, append(c.args, "-p", "Do it.", "--output", "json")...)
		y.mu.Lock()
		ran := strings.Join(slices.Sorted(slices.Values(y.ran)), ",")
		y.mu.Unlock()
		if code != c.code || ran != c.ran {
			t.Errorf("%s: exit %d, want %d; ran %q, want %q; %s%s %v", name, code, c.code, ran, c.ran, out, notes, server.Refused())
		}
		if code == exitUnreachable {
			continue
		}
		var report struct {
			Answer, Stop, Session string
			Calls                 []struct{ State string }
		}
		if err := json.Unmarshal([]byte(out), &report); err != nil || report.Session == "" || report.Stop == "" {
			t.Errorf("%s: %v: %s", name, err, out)
		}
		for _, r := range server.Asked() {
			if strings.Contains(string(r.Raw), "confirmation_id") {
				t.Errorf("%s: the model was shown a token: %s", name, r.Raw)
			}
		}
	}
}

func TestAgentShowsItsCallsAndText(t *testing.T) {
	y := openTestFabric(t)
	out, notes, code, _ := y.agentRun(t, modeltest.Script{calls("read a"), {Text: "Two\nlines \x1b[31m."}}, "Do it.")
	if code != 0 || !strings.HasPrefix(out, "Two\nlines") || strings.Contains(out, "\x1b") {
		t.Errorf("exit %d, %q", code, out)
	}
	if !strings.Contains(notes, `→ notes__read {"text":"a"}`) || !strings.Contains(notes, "← notes__read: succeeded") {
		t.Errorf("the notes are %q", notes)
	}
	_, notes, _, _ = y.agentRun(t, modeltest.Script{calls("read a"), {Text: "x"}}, "--hide-json", "Do it.")
	if strings.Contains(notes, `"text"`) {
		t.Errorf("with --hide-json the notes are %q", notes)
	}
	out, _, _, _ = y.agentRun(t, modeltest.Script{calls("read a"), {Text: "x"}}, "--output", "stream-json", "Do it.")
	var kinds []string
	for line := range strings.Lines(out) {
		var e struct{ Type string }
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		kinds = append(kinds, e.Type)
	}
	if got := strings.Join(kinds, " "); got != "call result text report" {
		t.Errorf("the events are %s", got)
	}
}

func TestASessionOfTheAgentIsContinued(t *testing.T) {
	y := openTestFabric(t)
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	server := modeltest.New(modeltest.Script{calls("read a"), {Text: "First."}, {Text: "Second."}})
	api := httptest.NewServer(server)
	defer api.Close()
	run := func(args ...string) (string, error) {
		var stdout bytes.Buffer
		root := rootCommand()
		root.SetArgs(append([]string{"agent", "--url", y.url, "--base-url", api.URL, "-p"}, args...))
		root.SetOut(&stdout)
		root.SetErr(&bytes.Buffer{})
		root.SetIn(strings.NewReader(""))
		err := root.ExecuteContext(t.Context())
		return stdout.String(), err
	}
	if out, err := run("--model", "anthropic:test", "Begin."); err != nil || out != "First.\n" {
		t.Fatalf("%q, %v", out, err)
	}
	if out, err := run("--continue", "Go on."); err != nil || out != "Second.\n" {
		t.Fatalf("%q, %v", out, err)
	}
	if asked := server.Asked(); len(asked) != 3 || asked[2].Messages != 5 {
		t.Errorf("the continued conversation has %d messages", asked[len(asked)-1].Messages)
	}
	files, err := filepath.Glob(filepath.Join(os.Getenv("XDG_STATE_HOME"), "callyard", "agent", "*.jsonl"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v, %v", files, err)
	}
	if out, err := run("--resume", strings.TrimSuffix(filepath.Base(files[0]), ".jsonl"), "--fork", "Or so."); err != nil || out != "Second.\n" {
		t.Errorf("%q, %v", out, err)
	}
}

// TestASessionKeepsItsModel continues a session while CALLYARD_MODEL names a model of another API,
// which does not understand its messages.
func TestASessionKeepsItsModel(t *testing.T) {
	y := openTestFabric(t)
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	server := modeltest.New(modeltest.Script{calls("read a"), {Text: "First."}, {Text: "Second."}, {Text: "Third."}})
	api := httptest.NewServer(server)
	defer api.Close()
	run := func(args ...string) (string, error) {
		var stdout bytes.Buffer
		root := rootCommand()
		root.SetArgs(append([]string{"agent", "--url", y.url, "--base-url", api.URL, "-p"}, args...))
		root.SetOut(&stdout)
		root.SetErr(&bytes.Buffer{})
		root.SetIn(strings.NewReader(""))
		err := root.ExecuteContext(t.Context())
		return stdout.String(), err
	}
	t.Setenv("CALLYARD_MODEL", "anthropic:test")
	if out, err := run("Begin."); err != nil || out != "First.\n" {
		t.Fatalf("%q, %v", out, err)
	}
	t.Setenv("CALLYARD_MODEL", "openai:test")
	if out, err := run("--continue", "Go on."); err != nil || out != "Second.\n" {
		t.Errorf("%q, %v", out, err)
	}
	if out, err := run("--continue", "--model", "openai:test", "Go on."); exitCode(err) != exitUsage || !strings.Contains(err.Error(), "a model of the same API") {
		t.Errorf("another API: %q, %v", out, err)
	}
	if out, err := run("--continue", "--model", "anthropic:other", "Go on."); err != nil || out != "Third.\n" {
		t.Errorf("another model: %q, %v", out, err)
	}
	for _, r := range server.Asked() {
		if r.Wire != "anthropic" {
			t.Errorf("the API of %s was asked", r.Wire)
		}
	}
}

// TestAHeldCallSaysHowToContinue leaves a call held. The printed command must find the session, also
// if its transcript is not in the default directory.
func TestAHeldCallSaysHowToContinue(t *testing.T) {
	y := openTestFabric(t)
	api := httptest.NewServer(modeltest.New(modeltest.Script{calls("delete a"), {Text: "Done."}}))
	defer api.Close()
	var stdout, stderr bytes.Buffer
	c := &client{in: strings.NewReader("Delete it.\nq\n"), out: screen{w: &stdout}, note: screen{w: &stderr}}
	if err := y.converseAs(t.Context(), t, c, api.URL); exitCode(err) != exitHeld {
		t.Fatalf("%v: %s", err, &stderr)
	}
	named := regexp.MustCompile("`callyard agent --resume (.+)` when").FindStringSubmatch(stderr.String())
	if named == nil {
		t.Fatal(stderr.String())
	}
	if _, err := os.Stat(named[1]); err != nil {
		t.Errorf("there is no session %s: %v", named[1], err)
	}
}

// fullDisk fails every write.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

// TestUnwrittenAnswerIsAnError writes the answer to a full disk, in each output format.
func TestUnwrittenAnswerIsAnError(t *testing.T) {
	y := openTestFabric(t)
	for _, output := range []string{"text", "json", "stream-json"} {
		api := httptest.NewServer(modeltest.New(modeltest.Script{calls("read a"), {Text: "Done."}}))
		root := rootCommand()
		root.SetArgs([]string{"agent", "--url", y.url, "--model", "anthropic:test", "--base-url", api.URL, "--transcript", filepath.Join(t.TempDir(), "t.jsonl"), "--output", output, "x"})
		root.SetOut(fullDisk{})
		root.SetErr(&bytes.Buffer{})
		root.SetIn(strings.NewReader(""))
		if err := root.ExecuteContext(t.Context()); !errors.Is(err, syscall.ENOSPC) || exitCode(err) == exitOK {
			t.Errorf("%s: %v", output, err)
		}
		api.Close()
	}
}

// TestInvalidAgentCommandCreatesNoSession runs commands with a fault: --continue must not find
// a session of theirs, and the corrected command can use the same file.
func TestInvalidAgentCommandCreatesNoSession(t *testing.T) {
	y := openTestFabric(t)
	state := t.TempDir()
	t.Setenv("XDG_STATE_HOME", state)
	file := filepath.Join(t.TempDir(), "t.jsonl")
	for _, args := range [][]string{{"--model", "closedai:x", "x"}, {"--model", "closedai:x", "--transcript", file, "x"}, {"--model", "ollama:m"}, {"--model", "ollama:m", "--prices", "none.json", "x"}} {
		root := rootCommand()
		root.SetArgs(append([]string{"agent"}, args...))
		root.SetOut(&bytes.Buffer{})
		root.SetErr(&bytes.Buffer{})
		root.SetIn(strings.NewReader(""))
		if err := root.ExecuteContext(t.Context()); exitCode(err) != exitUsage {
			t.Errorf("%v: %v", args, err)
		}
	}
	if files, err := filepath.Glob(filepath.Join(state, "callyard", "agent", "*")); err != nil || len(files) != 0 {
		t.Errorf("there are %v, %v", files, err)
	}
	if out, notes, code, _ := y.agentRun(t, modeltest.Script{{Text: "Done."}}, "--transcript", file, "x"); code != 0 {
		t.Errorf("exit %d: %s%s", code, out, notes)
	}
	if text, err := os.ReadFile(file); err != nil || len(text) == 0 {
		t.Errorf("the session has no transcript: %v", err)
	}
}

func TestAgentCommandLineFaultsAreReported(t *testing.T) {
	prices := func(text string) string {
		path := filepath.Join(t.TempDir(), "prices.json")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for want, args := range map[string][]string{
		"PROVIDER:NAME":       {"-p", "x"},
		"closedai":            {"--model", "closedai:x", "x"},
		"--output cannot be":  {"--model", "ollama:m", "-o", "xml", "x"},
		"--select":            {"--model", "ollama:m", "--select", "none", "x"},
		"--prices":            {"--model", "ollama:m", "--max-cost", "1", "x"},
		"--fork needs":        {"--model", "ollama:m", "--fork", "x"},
		"There is no prompt":  {"--model", "ollama:m"},
		"ANTHROPIC_API_KEY":   {"--model", "anthropic:m", "x"},
		"session to continue": {"--model", "ollama:m", "--continue", "x"},
		"cannot be combined":  {"--resume", "a", "--continue"},
		"is for new sessions": {"--resume", "a", "--transcript", "b.jsonl"},
		"not be negative":     {"--model", "ollama:m", "--max-steps", "-1", "x"},
		"is negative; use":    {"--model", "ollama:m", "--time", "-1s", "x"},
		"no prices for":       {"--model", "ollama:m", "--prices", prices(`{"ollama:n": {"input": 1}}`), "x"},
		`unknown field "in"`:  {"--model", "ollama:m", "--max-cost", "1", "--prices", prices(`{"ollama:m": {"in": 1, "output": 1}}`), "x"},
		"negative price for":  {"--model", "ollama:m", "--max-cost", "1", "--prices", prices(`{"ollama:m": {"input": 1, "output": -1}}`), "x"},
		"--header must":       {"--model", "ollama:m", "--header", "X Y: z", "x"},
		"on one line":         {"--model", "ollama:m", "--header", "X-Y: a\nb", "x"},
		"form Name: value":    {"--model", "ollama:m", "--header", "X-Y", "x"},
		"needs a terminal":    {"--model", "ollama:m", "--confirm", "ask", "x"},
		"--json-width must":   {"--model", "ollama:m", "--json-width", "-1", "x"},
		"pattern":             {"--model", "ollama:m", "--tools", "[", "x"},
	} {
		t.Setenv("XDG_STATE_HOME", t.TempDir())
		root := rootCommand()
		root.SetArgs(append([]string{"agent"}, args...))
		root.SetOut(&bytes.Buffer{})
		root.SetErr(&bytes.Buffer{})
		root.SetIn(strings.NewReader(""))
		err := root.ExecuteContext(t.Context())
		if err == nil || !strings.Contains(err.Error(), want) || exitCode(err) != exitUsage {
			t.Errorf("%v: %v (%d)", args, err, exitCode(err))
		}
	}
}

func TestMCPBridgePortOverridesPortOfTheAddress(t *testing.T) {
	for _, c := range []struct {
		address string
		port    int
		want    string
	}{
		{"http://127.0.0.1", 0, "http://127.0.0.1"},
		{"http://127.0.0.1", 4000, "http://127.0.0.1:4000"},
		{"http://yard:3000", 4000, "http://yard:4000"},
		{"https://[::1]:3000/base", 4000, "https://[::1]:4000/base"},
		{"yard", 0, ""},
		{"http://yard", 70000, ""},
	} {
		if got, err := mcpAddress(c.address, c.port); got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s with port %d: %q, %v", c.address, c.port, got, err)
		}
	}
}

// A model without tools would answer as if none existed.
func TestPatternsThatFitNoToolAreRefused(t *testing.T) {
	y := openTestFabric(t)
	for _, pattern := range []string{"notes/raed", "read"} {
		_, notes, code, server := y.agentRun(t, modeltest.Script{{Text: "There are no tools."}}, "-p", "--tools", pattern, "Read a.")
		if code != exitUsage || !strings.Contains(notes, "No tool matches --tools") || len(server.Asked()) > 0 {
			t.Errorf("%s: code %d, %q, the model was asked %d times", pattern, code, notes, len(server.Asked()))
		}
	}
	if out, notes, code, _ := y.agentRun(t, modeltest.Script{{Text: "Done."}}, "-p", "--tools", "notes/re*", "Read a."); code != exitOK || out != "Done.\n" {
		t.Errorf("code %d, %q, %q", code, out, notes)
	}
}
