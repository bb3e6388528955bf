package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// environments is a running `callyard env`.
type environments struct {
	*process
	url, data string
}

// startEnv starts `callyard env` with an environments file, its other files, and
// env in its environment.
func startEnv(t *testing.T, servers string, files map[string]string, env ...string) *environments {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, path, text)
	}
	e := &environments{data: filepath.Join(dir, "data")}
	args := []string{"env", "--environments", filepath.Join(dir, "env.yaml"), "--data", e.data, "--listen", "127.0.0.1:0"}
	if servers != "" {
		args = append(args, "--servers", servers)
	}
	binaries, err := programs.plain()
	if err != nil {
		t.Fatal(err)
	}
	e.process = start(t, program{path: filepath.Join(binaries, "callyard"), args: args, env: env})
	e.url = e.says(t, `environments are served at (http://\S+):`)[1]
	return e
}

// reply is the response to a reset or step over HTTP.
type reply struct {
	Observation struct {
		Result *struct {
			Data json.RawMessage `json:"data"`
		} `json:"result"`
		Error *struct {
			Type string `json:"error_type"`
		} `json:"error"`
	} `json:"observation"`
	Reward   *float64 `json:"reward"`
	Done     bool     `json:"done"`
	Metadata struct {
		SessionID   string `json:"session_id"`
		Masked      bool   `json:"masked"`
		FailureKind string `json:"failure_kind"`
	} `json:"metadata"`
}

func (e *environments) post(t testing.TB, path string, body any) (out reply) {
	t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := (&http.Client{Timeout: time.Minute}).Post(e.url+path, "application/json", bytes.NewReader(text))
	if err != nil {
		t.Error(err)
		return out
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err == nil {
		err = json.Unmarshal(answer, &out)
	}
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Errorf("%s %s: %s %s (%v)", path, text, resp.Status, answer, err)
	}
	return out
}

func (e *environments) step(t testing.TB, session, tool string, arguments any) reply {
	t.Helper()
	return e.post(t, "/step", map[string]any{"session_id": session, "action": map[string]any{"tool_name": tool, "arguments": arguments}})
}

// notesFiles is an environment of built-in servers, which keep state by session.
var notesFiles = map[string]string{
	"env.yaml": `
environments:
  notes:
    description: Keep a to-do list.
    tools: [todo/*, calculator/evaluate]
    tasks_file: tasks.jsonl
    prompt: "Do this: {{.question}}"
    success: 'results.exists(r, r.tool == "evaluate" && r.text.contains("42"))'
    reward: {weights: {success: 1, execution: 0.5, arguments: 0.5}}
`,
	"tasks.jsonl": `{"question":"What is 40 + 0?","expected":["evaluate"]}
{"question":"What is 40 + 1?","expected":["evaluate"]}
{"question":"What is 40 + 2?","expected":["evaluate"]}
{"question":"What is 40 + 3?","expected":["evaluate"]}
`,
}

// TestTheClientsOfTrainersGetEqualRewards runs the published clients of OpenEnv and of the Open
// Reward Standard, and the validator of OpenEnv, unchanged.
func TestTheClientsOfTrainersGetEqualRewards(t *testing.T) {
	python := os.Getenv("CALLYARD_TEST_ENV")
	if python == "" {
		t.Skip("CALLYARD_TEST_ENV names no Python with openenv, ors-sdk and openreward; scripts/test.sh installs it")
	}
	episodes := 100
	if n, err := strconv.Atoi(os.Getenv("CALLYARD_TEST_ENV_EPISODES")); err == nil {
		episodes = n
	}
	e := startEnv(t, "", notesFiles)
	run := func(t *testing.T, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), python, args...)
		cmd.Env = append(cleanEnviron(), "NO_PROXY=127.0.0.1", "no_proxy=127.0.0.1", "PYTHONDONTWRITEBYTECODE=1")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		return lines[len(lines)-1]
	}
	if out := run(t, "-m", "openenv.cli", "validate", "--url", e.url); !strings.Contains(out, "PASS") {
		t.Errorf("the validator says %s", out)
	}
	script := filepath.Join(programs.root, "e2e", "clients-env", "episodes.py")
	want := make([]float64, episodes)
	for i := range want {
		switch {
		case i%2 == 1:
			want[i] = 1 // another tool was called, in the right form, and it ran
		case i%4 == 2:
			want[i] = 5
		default:
			want[i] = 4
		}
	}
	for _, client := range []string{"generic", "mcp", "sync", "ors", "openreward"} {
		t.Run(client, func(t *testing.T) {
			t.Parallel()
			var got []float64
			if err := json.Unmarshal([]byte(run(t, script, e.url, client, strconv.Itoa(episodes))), &got); err != nil {
				t.Fatal(err)
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("the rewards of %s are %v, want %v", client, got, want)
			}
		})
	}
}

func TestEpisodesInSessionsHaveSeparateState(t *testing.T) {
	e := startEnv(t, "", notesFiles)
	var work sync.WaitGroup
	for i := range 64 {
		work.Go(func() {
			session := e.post(t, "/reset", map[string]any{"index": i % 4}).Metadata.SessionID
			nonce := fmt.Sprintf("nonce-%d-", i)
			for n := range 3 {
				e.step(t, session, "update", map[string]any{"todos": []string{fmt.Sprintf("[%d] %s%d (planned)", n, nonce, n)}})
				r := e.step(t, session, "list", map[string]any{})
				if r.Observation.Result == nil || !strings.Contains(string(r.Observation.Result.Data), nonce) || strings.Count(string(r.Observation.Result.Data), "nonce-") != strings.Count(string(r.Observation.Result.Data), nonce) {
					t.Errorf("episode %d sees %+v", i, r.Observation)
				}
			}
			if r := e.step(t, session, "finish", map[string]any{}); !r.Done || r.Reward == nil {
				t.Errorf("episode %d ended with %+v", i, r)
			}
		})
	}
	work.Wait()
}

// filesFiles is an environment whose episodes have a process each, on a copy of a directory.
func filesFiles(isolation string) map[string]string {
	return map[string]string{
		"env.yaml": `
environments:
  files:
    tools: ["files/*"]
    isolation: ` + isolation + `
    confirm: allow
    state: {dir: state, warm: 2, episodes: 8}
    tasks_file: tasks.jsonl
    reward: {weights: {selection: 0, format: 0, state: 1}}
`,
		"tasks.jsonl":    `{"question":"Write hi to note.txt.","labels":[{"name":"write_file","arguments":{"path":"note.txt","content":"hi"}}]}`,
		"state/seed.txt": "seed",
	}
}

func startFiles(t *testing.T) *environments {
	t.Helper()
	return startEnv(t, serversFile(t, map[string]entry{"files": trusted(fromNPM("filesystem", "{EPISODE_DIR}"))}), filesFiles("process"))
}

func TestEpisodesInProcessesHaveSeparateState(t *testing.T) {
	e := startFiles(t)
	var work sync.WaitGroup
	for i := range 4 {
		work.Go(func() {
			session := e.post(t, "/reset", map[string]any{}).Metadata.SessionID
			text, want := "hi", 1.0
			if i%2 == 1 {
				text, want = "ho", 0
			}
			e.step(t, session, "write_file", map[string]any{"path": "note.txt", "content": text})
			if r := e.step(t, session, "read_text_file", map[string]any{"path": "note.txt"}); r.Observation.Result == nil || !strings.Contains(string(r.Observation.Result.Data), text) {
				t.Errorf("episode %d reads %+v", i, r.Observation)
			}
			if r := e.step(t, session, "finish", map[string]any{}); !r.Done || r.Reward == nil || *r.Reward != want {
				t.Errorf("episode %d ended with %+v, want the reward %v", i, r, want)
			}
		})
	}
	work.Wait()
	e.stop(t)
	left, err := filepath.Glob(filepath.Join(e.data, "episodes", "*", "episode-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("directories are left: %v (%v)", left, err)
	}
}

// TestAnEpisodeWhoseProcessIsKilledIsMasked kills the processes of one episode. It then has no
// reward, and the other one continues.
func TestAnEpisodeWhoseProcessIsKilledIsMasked(t *testing.T) {
	e := startFiles(t)
	lost := e.post(t, "/reset", map[string]any{}).Metadata.SessionID
	other := e.post(t, "/reset", map[string]any{}).Metadata.SessionID
	e.step(t, lost, "write_file", map[string]any{"path": "lost.txt", "content": "x"})
	e.step(t, other, "write_file", map[string]any{"path": "note.txt", "content": "hi"})
	written, err := filepath.Glob(filepath.Join(e.data, "episodes", "*", "episode-*", "lost.txt"))
	if err != nil || len(written) != 1 {
		t.Fatalf("the file was written to %v (%v)", written, err)
	}
	if killProcessesIn(t, filepath.Dir(written[0])) == 0 {
		t.Fatal("no process has the directory of the episode")
	}
	began := time.Now()
	r := e.step(t, lost, "read_text_file", map[string]any{"path": "lost.txt"})
	if !r.Done || r.Reward != nil || !r.Metadata.Masked || r.Metadata.FailureKind != "worker-lost" && r.Metadata.FailureKind != "outcome-unknown" {
		t.Errorf("the episode ended with %+v", r)
	}
	if took := time.Since(began); took > time.Minute {
		t.Errorf("it took %v", took)
	}
	if r := e.step(t, other, "finish", map[string]any{}); r.Reward == nil || *r.Reward != 1 {
		t.Errorf("the other episode ended with %+v", r)
	}
}

// killProcessesIn kills the processes that have the directory among their arguments.
func killProcessesIn(t *testing.T, dir string) (killed int) {
	t.Helper()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil || len(lines) == 0 {
		t.Skip("there is no /proc")
	}
	for _, line := range lines {
		text, err := os.ReadFile(line)
		if err != nil || !bytes.Contains(text, []byte(dir)) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(line)))
		if err == nil && syscall.Kill(pid, syscall.SIGKILL) == nil {
			killed++
		}
	}
	return killed
}
