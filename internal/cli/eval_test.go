package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/callyard/callyard/clients/go/batchfile/batchfiletest"
)

// evalFiles writes a data set of n samples in two categories, and answers that are correct for
// the samples for which right returns true.
func evalFiles(t *testing.T, n int, right func(i int) bool) (data, responses string) {
	t.Helper()
	var d, r strings.Builder
	for i := range n {
		fmt.Fprintf(&d, "{\"id\":\"s%d\",\"category\":\"%s\",\"question\":\"q\",\"tools\":[\"read\",\"write\"],\"target_tools\":\"read\"}\n", i, []string{"files", "web"}[i%2])
		text := `<tool_call>{"name":"write"}</tool_call>`
		if right(i) {
			text = `<tool_call>{"name":"read"}</tool_call>`
		}
		line, err := json.Marshal(map[string]any{"id": fmt.Sprint("s", i), "text": text})
		if err != nil {
			t.Fatal(err)
		}
		r.Write(append(line, '\n'))
	}
	dir := t.TempDir()
	data, responses = filepath.Join(dir, "data.jsonl"), filepath.Join(dir, "responses.jsonl")
	for name, text := range map[string]string{data: d.String(), responses: r.String()} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return data, responses
}

// evaluate runs `callyard eval` and returns its output and exit code.
func evaluate(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, faults strings.Builder
	root := rootCommand()
	root.SetOut(&out)
	root.SetErr(&faults)
	root.SetArgs(append([]string{"eval"}, args...))
	err := root.ExecuteContext(t.Context())
	showError(&faults, err)
	return out.String(), faults.String(), exitCode(err)
}

func TestAnEvaluationIsScoredComparedAndReported(t *testing.T) {
	plainEnvironment(t)
	home, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	dir, goldens := t.TempDir(), map[string]string{}
	t.Chdir(dir)
	file := filepath.Join(dir, "report.html")
	data, a := evalFiles(t, 40, func(i int) bool { return i%4 != 0 })
	_, b := evalFiles(t, 40, func(i int) bool { return i%4 != 0 || i < 24 })
	for _, step := range []struct {
		name string
		args []string
	}{
		{"eval-score", []string{"score", "run-a", "--data", "jsonl:" + data, "--responses", a}},
		{"eval-score-again", []string{"score", "run-a"}},
		{"", []string{"score", "run-b", "--data", "jsonl:" + data, "--responses", b, "--json"}},
		{"eval-compare", []string{"compare", "run-a", "run-b", "--equivalent", "0.02"}},
		{"eval-report", []string{"report", "run-a", "--compare", "run-b", "--html", "report.html"}},
	} {
		stdout, stderr, code := evaluate(t, step.args...)
		if code != exitOK || stderr != "" {
			t.Fatalf("%v: code %d, %s", step.args, code, stderr)
		}
		if step.name != "" {
			goldens[step.name] = stdout
		} else if !json.Valid([]byte(stdout)) {
			t.Errorf("%v: %s", step.args, stdout)
		}
	}
	t.Chdir(home) // the golden files are there
	for name, text := range goldens {
		golden(t, name, text)
	}
	page, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(page), "Compared with run-b") {
		t.Errorf("%s, %v", page, err)
	}
}

func TestFaultsOfAnEvaluationAreNamed(t *testing.T) {
	plainEnvironment(t)
	t.Chdir(t.TempDir())
	data, responses := evalFiles(t, 4, func(int) bool { return true })
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"score"}, "number of arguments"},
		{[]string{"score", "run"}, "name a data set with --data"},
		{[]string{"score", "run", "--data", "csv:x"}, "jsonl, mcptoolbench, bfcl, tau2"},
		{[]string{"score", "run", "--missing", "never"}, "--missing must be"},
		{[]string{"score", "run", "--iterations", "1"}, "--iterations must be"},
		{[]string{"score", "run", "--data", "jsonl:" + responses, "--responses", data}, ":1:1: the member question is missing"},
		{[]string{"score", "run", "--limit", "1"}, "name it with --data"},
		{[]string{"run", "run", "--set", "simple_python", "--model", "ollama:m"}, "name it with --data"},
		{[]string{"run", "run", "--data", "jsonl:" + data, "--limit", "-1", "--model", "ollama:m"}, "--limit must not be negative"},
		{[]string{"compare", "run", "run"}, "callyard eval score"},
		{[]string{"compare", "run", "run", "--level", "x"}, "--level must be"},
		{[]string{"compare", "run", "run", "--equivalent", "2"}, "--equivalent must be"},
		{[]string{"report", "run"}, "--html must name"},
	} {
		_, stderr, code := evaluate(t, c.args...)
		if code != exitUsage || !strings.Contains(stderr, c.says) {
			t.Errorf("%v: code %d, %s", c.args, code, stderr)
		}
	}
}

// Calls of a server that Callyard does not have would wait for its worker.
func TestAnUnknownServerOfAnEvaluationIsRefused(t *testing.T) {
	plainEnvironment(t)
	t.Chdir(t.TempDir())
	if err := os.WriteFile("data.json", []byte(`[{"uuid":"t","category":"files","query":"q","function_call_label":[{"name":"echo","mcp_server":"dmo","input":{}}]}]`), 0o600); err != nil {
		t.Fatal(err)
	}
	d := openDoor(t, map[string]answer{
		"GET /servers":      jsonAnswer(`{"servers":[{"id":"demo","initialization_state":"ready"}]}`),
		"GET /servers/demo": jsonAnswer(`{"id":"demo","initialization_state":"ready"}`),
		"GET /servers/dmeo": problemAnswer(404, `{"title":"Not found","status":404,"detail":"There is no server \"dmeo\".","retryable":false}`),
		"GET /servers/dmo":  problemAnswer(404, `{"title":"Not found","status":404,"detail":"There is no server \"dmo\".","retryable":false}`),
	})
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"--server", "dmo=dmeo"}, "--server dmo=dmeo: There is no server"},
		{nil, `The data set has calls of the server "dmo". Choose its server at Callyard with --server dmo=ID: There is no server`},
		{[]string{"--server", "other=demo"}, "--server dmo=ID"},
		{[]string{"--model", "ollama:m", "--execute", "all"}, "--server dmo=ID"}, // before the model is asked
	} {
		_, stderr, code := evaluate(t, append([]string{"run", "run", "--data", "mcptoolbench:data.json", "--url", d.URL}, c.args...)...)
		if code != exitRefused || !strings.Contains(stderr, c.says) || !strings.Contains(stderr, "Did you mean demo?") {
			t.Errorf("%v: code %d, %s", c.args, code, stderr)
		}
	}
	for _, r := range d.requests() {
		if r.line == "POST /batches" {
			t.Error("a batch was made")
		}
	}
}

func TestLabelledCallsRunOnceAndContinue(t *testing.T) {
	plainEnvironment(t)
	t.Chdir(t.TempDir())
	var tasks []string
	for i := range 20 {
		tasks = append(tasks, fmt.Sprintf(`{"uuid":"t%d","category":"files","query":"q","function_call_label":[{"name":"echo","mcp_server":"fs","input":{"message":"%d"}}]}`, i, i))
	}
	if err := os.WriteFile("data.json", []byte("["+strings.Join(tasks, ",\n")+"]"), 0o600); err != nil {
		t.Fatal(err)
	}
	d := batchfiletest.Open(t)
	command := []string{"run", "run", "--data", "mcptoolbench:data.json", "--server", "fs=demo", "--url", d.URL, "--give-up", "1s"}
	d.Faults(func(what string) batchfiletest.Fault {
		if strings.Contains(what, "/results") {
			return batchfiletest.HangsUp
		}
		return batchfiletest.None
	})
	if _, stderr, code := evaluate(t, command...); code != exitUnreachable || !strings.Contains(stderr, "Repeat the command") {
		t.Fatalf("code %d: %s", code, stderr)
	}
	d.Faults(batchfiletest.NoFaults)
	stdout, stderr, code := evaluate(t, command...)
	if code != exitOK || !strings.Contains(stderr, "Continuing batch batch_1.") || !strings.Contains(stdout, "demo/echo") {
		t.Fatalf("code %d: %s%s", code, stdout, stderr)
	}
	if calls, err := os.ReadFile("run/labels/calls.jsonl"); err != nil || !bytes.Contains(calls, []byte(`{"custom_id":"t3#0#0","server":"demo","tool":"echo","arguments":{"message":"3"}}`)) {
		t.Errorf("%s, %v", calls, err)
	}
	asked := len(d.Requests())
	again, _, code := evaluate(t, command...)
	if code != exitOK || again != stdout || len(d.Requests()) != asked || d.Batches() != 1 {
		t.Errorf("once more: code %d, %d requests, %d batches: %s", code, len(d.Requests())-asked, d.Batches(), again)
	}
	if _, stderr, code := evaluate(t, append(command, "--server", "fs=other")...); code != exitUsage || !strings.Contains(stderr, "Use another folder, or start a new batch with --new") {
		t.Errorf("other calls: code %d, %s", code, stderr)
	}
}
