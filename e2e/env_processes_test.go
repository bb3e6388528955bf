package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/callyard/callyard/e2e/trainer"
)

// effectFiles is an environment of a server in Go, with a process for each episode.
func effectFiles(warm int) map[string]string {
	return map[string]string{
		"env.yaml": fmt.Sprintf(`
environments:
  effects:
    tools: ["scripted/effect", "scripted/echo"]
    isolation: process
    confirm: allow
    state: {dir: state, warm: %d, episodes: 64}
    tasks_file: tasks.jsonl
    reward: {weights: {selection: 0, format: 0, state: 1}}
`, warm),
		"tasks.jsonl":    `{"question":"Write one line.","labels":[{"name":"effect","arguments":{"path":"lines.txt","id":"one"}}]}`,
		"state/seed.txt": "seed",
	}
}

// TestEpisodesInProcessesLeakNothing runs many short episodes, each in a separate
// process, and checks for leftover processes, directories and memory.
func TestEpisodesInProcessesLeakNothing(t *testing.T) {
	const warm, lanes = 16, 8
	episodes, first := 48, 16
	if measured() {
		episodes, first = 3000, 1000
	}
	e := startEnv(t, serversFile(t, map[string]entry{"scripted": scripted("echo")}), effectFiles(warm))
	play := func(n int) *load {
		conns := make(chan *trainer.Conn, lanes)
		for range lanes {
			c, err := trainer.Dial(t.Context(), e.url)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			conns <- c
		}
		return runCalls(lanes, n, func(i int) error {
			c := <-conns
			defer func() { conns <- c }()
			return effectEpisode(c, i)
		})
	}
	play(first).none(t, "the first episodes")
	e.settle(t, warm)
	before := residentOf(t, e.pid())
	began := time.Now()
	play(episodes).none(t, "the episodes")
	took := time.Since(began)
	e.settle(t, warm)
	after := residentOf(t, e.pid())
	rate := float64(episodes) / took.Seconds()
	t.Logf("process episodes: %d of 3 steps, %.0f a second; memory %d KiB before, %d KiB afterwards", episodes, rate, before, after)
	if measured() && rate < 150 {
		t.Errorf("%.0f episodes a second, want 150", rate)
	}
	if measured() && float64(after) > 1.1*float64(before) {
		t.Errorf("the memory grew from %d to %d KiB", before, after)
	}
	e.stop(t)
	if left, dirs := e.leftovers(t); left > 0 || dirs > 0 {
		t.Errorf("%d processes and %d directories are left", left, dirs)
	}
}

// effectEpisode solves its task if the number is even.
func effectEpisode(c *trainer.Conn, i int) error {
	if _, err := c.Reset(nil); err != nil {
		return err
	}
	word, want := "one", 1.0
	if i%2 == 1 {
		word, want = "two", 0
	}
	if seen, err := c.Call("effect", map[string]any{"path": "lines.txt", "id": word}); err != nil || seen.Observation.Error != nil {
		return fmt.Errorf("effect: %+v (%w)", seen, err)
	}
	if seen, err := c.Call("echo", map[string]any{"text": word}); err != nil || seen.Observation.Error != nil {
		return fmt.Errorf("echo: %+v (%w)", seen, err)
	}
	seen, err := c.Call("finish", map[string]any{})
	if err == nil && (!seen.Done || seen.Reward == nil || *seen.Reward != want) {
		err = fmt.Errorf("it ended with %+v, want the reward %v", seen, want)
	}
	return err
}

// settle waits until only the warm processes run for episodes, and until the heap has been
// collected.
func (e *environments) settle(t *testing.T, warm int) {
	t.Helper()
	e.eventually(t, soon, "the processes of episodes", func() error {
		if left, dirs := e.leftovers(t); left != warm || dirs != warm {
			return fmt.Errorf("%d processes and %d directories, want %d of each", left, dirs, warm)
		}
		return nil
	})
}

// leftovers counts the directories of episodes, and the processes that run in them.
func (e *environments) leftovers(t *testing.T) (processes, dirs int) {
	t.Helper()
	base := filepath.Join(e.data, "episodes", "*", "episode-*")
	found, err := filepath.Glob(base)
	if err != nil {
		t.Fatal(err)
	}
	links, err := filepath.Glob("/proc/[0-9]*/cwd")
	if err != nil || len(links) == 0 {
		t.Skip("there is no /proc")
	}
	for _, link := range links {
		dir, err := os.Readlink(link)
		if in, _ := filepath.Match(base, dir); err == nil && in {
			processes++
		}
	}
	return processes, len(found)
}

// residentOf returns the resident memory of a process in KiB.
func residentOf(t *testing.T, pid int) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if errors.Is(err, os.ErrNotExist) {
		t.Skip("there is no /proc")
	}
	_, rest, found := strings.Cut(string(text), "VmRSS:")
	kib, err := strconv.Atoi(strings.TrimSpace(strings.SplitN(rest, "kB", 2)[0]))
	if !found || err != nil {
		t.Fatalf("the memory of %d: %v", pid, err)
	}
	return kib
}
