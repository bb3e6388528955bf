package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/agent/modeltest"
)

// pythonOfBFCL returns a Python with bfcl-eval; scripts/test.sh installs it.
func pythonOfBFCL(t *testing.T) string {
	t.Helper()
	python := os.Getenv("CALLYARD_TEST_BFCL")
	if python == "" {
		t.Skip("CALLYARD_TEST_BFCL names no Python with bfcl-eval")
	}
	return python
}

// TestConversationsOfBFCLHaveTheOfficialVerdict runs the labelled calls of BFCL's conversations at
// the server of the official classes as answers of a model, and in addition answers in which a turn
// lacks its last call. Both must have the verdict of the official checker. It takes 2
// conversations of each set, and all 800 with CALLYARD_EVAL_TURNS. CALLYARD_TEST_BFCL names a Python
// with bfcl-eval; scripts/test.sh installs it.
func TestConversationsOfBFCLHaveTheOfficialVerdict(t *testing.T) {
	python := pythonOfBFCL(t)
	limit, wait := "2", 2*time.Minute
	if os.Getenv("CALLYARD_EVAL_TURNS") != "" {
		limit, wait = "0", time.Hour
	}
	data, dir, command := withBFCL(t, python, wait)
	run := append([]string{"run", "run", "--data", data, "--limit", limit, "--execute", "label"}, atBFCL...)
	for _, set := range []string{"base", "miss_func", "miss_param", "long_context"} {
		run = append(run, "--set", "multi_turn_"+set)
	}
	if out, code := command(run...); code != 0 && code != 1 { // some labelled calls return an error
		t.Fatalf("exit %d: %s", code, out)
	}
	answers := filepath.Join(dir, "answers.jsonl")
	official := officialTurns(t, python, turnAnswers(t, filepath.Join(dir, "run", "samples.jsonl"), answers))
	out, code := command(append([]string{"run", "run", "--responses", answers, "--execute", "model"}, atBFCL...)...)
	if code != 0 && code != 1 {
		t.Fatalf("exit %d: %s", code, out)
	}
	if out, code = command("score", "run"); code != 0 || !strings.Contains(out, "Accepted by the data set's own checker") {
		t.Fatalf("exit %d: %s", code, out)
	}
	scores := turnScores(t, filepath.Join(dir, "run", "scores.jsonl"))
	if len(scores) != len(official) || len(scores) < 16 {
		t.Fatalf("%d scores, %d official verdicts", len(scores), len(official))
	}
	valid := [2]int{}
	for i, s := range scores { // both are in the order of the samples, then of the trials
		if s.Check == nil || *s.Check != official[i] {
			t.Errorf("%s, trial %d: %+v, official %+v", s.ID, s.Trial, s.Check, official[i])
			continue
		}
		if s.Check.Valid {
			valid[s.Trial]++
		}
	}
	if n := len(scores) / 2; valid[0] != n || valid[1] > n/2 {
		t.Errorf("of %d conversations, %d labelled and %d damaged ones are right", n, valid[0], valid[1])
	}
}

// TestModelAnswersABFCLConversation uses a model that makes the labelled calls of a conversation
// in which a function becomes available only in a later turn.
func TestModelAnswersABFCLConversation(t *testing.T) {
	python := pythonOfBFCL(t)
	data, dir, command := withBFCL(t, python, 2*time.Minute)
	read, err := os.ReadFile(filepath.Join(strings.TrimPrefix(data, "bfcl:"), "possible_answer", "BFCL_v4_multi_turn_miss_func.json"))
	if err != nil || !bytes.HasPrefix(read, []byte(`{"id": "multi_turn_miss_func_0", "ground_truth": [["cd(folder='document')", "mkdir(dir_name='temp')", "mv(`)) {
		t.Fatalf("another first conversation: %.200s, %v", read, err)
	}
	calls := func(all ...string) (turn modeltest.Turn) {
		for i := 0; i < len(all); i += 2 {
			turn.Calls = append(turn.Calls, modeltest.Call{ID: fmt.Sprint("c", i), Name: all[i], Arguments: all[i+1]})
		}
		return turn
	}
	text := modeltest.Turn{Text: "Done."}
	model := modeltest.New(modeltest.Script{
		calls("cd", `{"folder":"document"}`, "mkdir", `{"dir_name":"temp"}`), calls("mv", `{"source":"final_report.pdf","destination":"temp"}`), text,
		calls("cd", `{"folder":"temp"}`, "grep", `{"file_name":"final_report.pdf","pattern":"budget analysis"}`), text,
		text,
		calls("sort", `{"file_name":"final_report.pdf"}`), text,
		calls("cd", `{"folder":".."}`, "mv", `{"source":"previous_report.pdf","destination":"temp"}`, "cd", `{"folder":"temp"}`), calls("diff", `{"file_name1":"final_report.pdf","file_name2":"previous_report.pdf"}`), text,
	})
	api := httptest.NewServer(model)
	defer api.Close()
	run := append([]string{"run", "run", "--data", data, "--set", "multi_turn_miss_func", "--limit", "1", "--model", "compatible:m", "--base-url", api.URL, "--execute", "all"}, atBFCL...)
	if out, code := command(run...); code != 0 {
		t.Fatalf("exit %d: %s; refused: %v", code, out, model.Refused())
	}
	if out, code := command("score", "run"); code != 0 {
		t.Fatalf("exit %d: %s", code, out)
	}
	scores := turnScores(t, filepath.Join(dir, "run", "scores.jsonl"))
	if len(scores) != 1 || scores[0].Check == nil || !scores[0].Check.Valid {
		t.Errorf("%+v", scores)
	}
	asked := model.Asked()
	if len(asked) != 11 || slices.Contains(asked[5].Tools, "sort") || !slices.Contains(asked[6].Tools, "sort") || !strings.Contains(asked[10].Results[0].Text, "diff_lines") {
		t.Errorf("%d requests, the last with %+v", len(asked), asked[len(asked)-1].Results)
	}
}

// atBFCL are the flags for the server of the official classes.
var atBFCL = []string{"--server", "bfcl", "--reset", "bfcl/reset", "--state", "bfcl/state", "--give-up", "0s"}

// withBFCL starts Callyard with the server of the official classes. command runs `callyard eval` in
// dir, and returns its output and its exit code.
func withBFCL(t *testing.T, python string, wait time.Duration) (data, dir string, command func(args ...string) (string, int)) {
	t.Helper()
	server, err := filepath.Abs("servers/bfcl.py")
	if err != nil {
		t.Fatal(err)
	}
	found, err := filepath.Glob(filepath.Join(filepath.Dir(python), "../lib/python*/site-packages/bfcl_eval/data"))
	if err != nil || len(found) != 1 {
		t.Fatalf("the data: %v, %v", found, err)
	}
	d := startUp(t, setup{servers: serversFile(t, map[string]entry{"bfcl": {Command: python, Args: []string{server}, RiskLevel: 1, Sessions: 1, InFlight: 1}})})
	d.waitServers(t, 1, "bfcl")
	dir = t.TempDir()
	return "bfcl:" + found[0], dir, func(args ...string) (string, int) {
		p := start(t, program{name: "callyard eval", path: filepath.Join(bin(t), "callyard"), dir: dir, env: []string{"CALLYARD_URL=" + d.url}, args: append([]string{"eval"}, args...)})
		code := p.wait(t, wait)
		return p.out.String(), code
	}
}

// turnAnswers writes two answers to each sample, and returns them as input for the script of the
// official checker.
func turnAnswers(t *testing.T, samples, to string) (input []byte) {
	t.Helper()
	text, err := os.ReadFile(samples)
	if err != nil {
		t.Fatal(err)
	}
	var lines, cases bytes.Buffer
	for line := range bytes.Lines(text) {
		var s struct {
			ID     string
			Labels []struct {
				Name      string
				Arguments json.RawMessage
				Turn      int
			}
			Check struct{ Turns int }
		}
		if err := json.Unmarshal(line, &s); err != nil {
			t.Fatal(err)
		}
		for trial := range 2 {
			turns, official := make([][]any, s.Check.Turns), make([][]any, s.Check.Turns)
			for i := range turns {
				turns[i], official[i] = []any{}, []any{}
			}
			for i, label := range s.Labels {
				if trial == 1 && (i == len(s.Labels)-1 || s.Labels[i+1].Turn > label.Turn) {
					continue
				}
				call := map[string]any{"id": "c", "type": "function", "function": map[string]any{"name": label.Name, "arguments": string(label.Arguments)}}
				turns[label.Turn] = append(turns[label.Turn], map[string]any{"message": map[string]any{"role": "assistant", "tool_calls": []any{call}}})
				official[label.Turn] = append(official[label.Turn], []any{map[string]any{label.Name: label.Arguments}})
			}
			if err := json.NewEncoder(&lines).Encode(map[string]any{"id": s.ID, "trial": trial, "turns": turns}); err != nil {
				t.Fatal(err)
			}
			if err := json.NewEncoder(&cases).Encode(map[string]any{"id": s.ID, "turns": official}); err != nil {
				t.Fatal(err)
			}
		}
	}
	write(t, to, lines.String())
	return cases.Bytes()
}

// turnVerdict is the verdict of a checker.
type turnVerdict struct {
	Valid bool
	Error string
}

// officialTurns returns the verdicts of the official checker.
func officialTurns(t *testing.T, python string, input []byte) (verdicts []turnVerdict) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), python, "../internal/eval/stage/testdata/official_turns.py")
	cmd.Stdin, cmd.Stderr = bytes.NewReader(input), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(out) {
		var v struct {
			Valid bool
			Error string `json:"error_type"`
		}
		if err := json.Unmarshal(line, &v); err != nil {
			t.Fatal(err)
		}
		verdicts = append(verdicts, turnVerdict{v.Valid, v.Error})
	}
	return verdicts
}

// turnScore is the part of a line of scores.jsonl that this test reads.
type turnScore struct {
	ID    string
	Trial int
	Check *turnVerdict
}

func turnScores(t *testing.T, path string) (scores []turnScore) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(text) {
		var s turnScore
		if err := json.Unmarshal(line, &s); err != nil {
			t.Fatal(err)
		}
		scores = append(scores, s)
	}
	return scores
}
