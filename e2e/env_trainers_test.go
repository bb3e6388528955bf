//go:build trainers

package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// runTrainer runs a program of an installed trainer and returns its output.
func runTrainer(t *testing.T, env []string, program string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Dir = t.TempDir()
	// Both write caches to the home directory. verifiers looks for uv, which is in its folder.
	cmd.Env = append(cleanEnviron(), "NO_PROXY=127.0.0.1", "no_proxy=127.0.0.1", "PYTHONDONTWRITEBYTECODE=1", "PATH="+filepath.Dir(program)+string(os.PathListSeparator)+os.Getenv("PATH"))
	cmd.Env = append(cmd.Env, env...)
	var faults strings.Builder
	cmd.Stderr = &faults
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s\n%s", cmd.Args, err, out, faults.String())
	}
	return string(out)
}

// TestTRLBuildsDataSetAndTools has OpenRewardSpec create the input of TRL's trainer, and plays
// episodes with it.
func TestTRLBuildsDataSetAndTools(t *testing.T) {
	python := os.Getenv("CALLYARD_TEST_TRL")
	if python == "" {
		t.Fatal("CALLYARD_TEST_TRL names no Python with trl; make trainers installs it")
	}
	e := startEnv(t, "", notesFiles)
	out := runTrainer(t, []string{"OPENREWARD_API_URL=" + e.url, "OPENREWARD_SESSION_URL=" + e.url, "OPENREWARD_API_KEY=none"}, python,
		filepath.Join(programs.root, "e2e", "clients-train", "spec.py"), e.url, "8")
	if want := "[4.0, 1.0, 5.0, 1.0, 4.0, 1.0, 5.0, 1.0]"; strings.TrimSpace(out) != want {
		t.Errorf("the rewards are %s, want %s", out, want)
	}
}

var askedFor = regexp.MustCompile(`What is (.+)\?`)

// policy answers like a model behind the API of OpenAI: first with a call of the tool that solves
// the task in the observation, then with the end.
func policy(t *testing.T) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var q struct {
			Messages []struct{ Content string }
		}
		var seen struct {
			Observation struct{ Prompt string }
			Schema      struct {
				Tools []struct{ Name string } `json:"available_tools"`
			} `json:"action_schema"`
		}
		if json.NewDecoder(r.Body).Decode(&q) != nil || len(q.Messages) == 0 || json.Unmarshal([]byte(q.Messages[len(q.Messages)-1].Content), &seen) != nil || len(seen.Schema.Tools) < 4 {
			http.Error(w, "it shows no observation and tools", http.StatusBadRequest)
			return
		}
		action := `{"type":"call_tool","tool_name":"finish","arguments":{"answer":"?"}}`
		if m := askedFor.FindStringSubmatch(seen.Observation.Prompt); m != nil {
			action = fmt.Sprintf(`{"type":"call_tool","tool_name":"evaluate","arguments":{"expression":%q}}`, m[1])
		}
		chunk, err := json.Marshal(map[string]any{"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "scripted", "choices": []any{
			map[string]any{"index": 0, "finish_reason": "stop", "delta": map[string]any{"role": "assistant", "content": action}},
		}})
		if err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "data: %s\n\ndata: [DONE]\n\n", chunk)
	}))
	t.Cleanup(s.Close)
	return s
}

// TestVerifiersTaskSetRuns runs the task set "openenv" with a scripted model. verifiers starts
// its chat program with uv, which downloads the packages of that program the first time.
func TestVerifiersTaskSetRuns(t *testing.T) {
	eval := os.Getenv("CALLYARD_TEST_VERIFIERS")
	if eval == "" {
		t.Fatal("CALLYARD_TEST_VERIFIERS names no vf-eval of verifiers; make trainers installs it")
	}
	e, model := startEnv(t, "", notesFiles), policy(t)
	dir := t.TempDir()
	write(t, filepath.Join(dir, "eval.toml"), strings.NewReplacer("ENV", e.url, "MODEL", model.URL).Replace(`
model = "scripted"
push = false
num_rollouts = 2

[client]
base_url = "MODEL/v1"

[env.player]
harness = {id = "null"}
runtime = {type = "subprocess"}

[env.taskset]
id = "openenv"
base_url = "ENV"
resets = [{split = "train", index = 0}, {split = "train", index = 2}]
`))
	runTrainer(t, nil, eval, "@", filepath.Join(dir, "eval.toml"), "--no-rich", "--output-dir", filepath.Join(dir, "out"))
	files, err := filepath.Glob(filepath.Join(dir, "out", "*", "traces.jsonl"))
	if err != nil || len(files) != 1 {
		t.Fatalf("the traces are in %v (%v)", files, err)
	}
	f, err := os.Open(files[0])
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var rewards []float64
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var one struct {
			OK     bool
			Traces []struct {
				Rewards map[string]struct{ Score float64 }
			}
		}
		decode(t, lines.Bytes(), &one)
		if !one.OK || len(one.Traces) != 1 {
			t.Fatalf("an episode failed: %s", lines.Text())
		}
		rewards = append(rewards, one.Traces[0].Rewards["openenv_reward"].Score)
	}
	slices.Sort(rewards)
	if want := []float64{4, 4, 5, 5}; !slices.Equal(rewards, want) {
		t.Errorf("the rewards are %v, want %v", rewards, want)
	}
	eventually(t, time.Minute, "the end of the episodes", func() error {
		if open := e.metric(t, `callyard_episodes{environment="notes"}`); open != 0 {
			return fmt.Errorf("%v are in progress", open)
		}
		return nil
	})
}
