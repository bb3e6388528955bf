package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// startContained starts an environment whose episodes have a container each, with a server
// that no other test uses.
func startContained(t *testing.T) (e *environments, server string) {
	t.Helper()
	server = serverID(strings.ToLower(t.Name()))
	files := effectFiles(2)
	files["env.yaml"] = strings.NewReplacer("isolation: process", "isolation: sandbox", "scripted/", server+"/", `"`+"scripted", `"`+server).Replace(files["env.yaml"])
	t.Cleanup(func() { noSandboxes(t, "", server) })
	return startEnv(t, serversFile(t, map[string]entry{server: sandboxed(t, "echo", nil)}), files), server
}

// directories returns the directories of the episodes of a server, including ready ones.
func (e *environments) directories(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(e.data, "episodes", "*", "episode-*"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// effect makes a call, which is the labelled one if word is "one".
func (e *environments) effect(t *testing.T, session, word string) reply {
	t.Helper()
	return e.step(t, session, "effect", map[string]any{"path": "lines.txt", "id": word})
}

// ends finishes an episode and checks its reward.
func (e *environments) ends(t *testing.T, session string, want float64) {
	t.Helper()
	if r := e.step(t, session, "finish", map[string]any{}); !r.Done || r.Reward == nil || *r.Reward != want {
		t.Errorf("the episode ended with %+v, want the reward %v", r, want)
	}
}

func (e *environments) begin(t *testing.T, snapshot string) string {
	t.Helper()
	return e.post(t, "/reset", map[string]any{"snapshot": snapshot}).Metadata.SessionID
}

// TestEpisodesInContainersHaveSeparateState runs two concurrent episodes, whose calls write a
// file of the same name, and branches from one of them.
func TestEpisodesInContainersHaveSeparateState(t *testing.T) {
	e, server := startContained(t)
	one, two := e.begin(t, ""), e.begin(t, "")
	for _, session := range []string{one, two} {
		if r := e.effect(t, session, "one"); r.Observation.Error != nil || r.Observation.Result == nil {
			t.Fatalf("effect: %+v", r)
		}
	}
	written := 0
	for _, dir := range e.directories(t) {
		text, err := os.ReadFile(filepath.Join(dir, "lines.txt"))
		if err == nil && string(text) == "one\n" {
			written++
		}
	}
	if written != 2 {
		t.Errorf("%d directories have the one line of an episode, want 2", written)
	}
	if r := e.step(t, one, "env", map[string]any{}); r.Observation.Error == nil {
		t.Errorf("a tool that the environment does not offer: %+v", r)
	}
	middle := e.snapshot(t, one)
	e.effect(t, two, "two")
	e.ends(t, one, 1)
	e.ends(t, two, 0)
	branch := e.begin(t, middle)
	e.ends(t, branch, 1)
	again := e.begin(t, middle) // written by the user of another container
	if r := e.effect(t, again, "two"); r.Observation.Error != nil {
		t.Errorf("a container cannot change what another one wrote: %+v", r)
	}
	e.ends(t, again, 0)
	e.stop(t)
	noSandboxes(t, "", server)
	if left, err := filepath.Glob(filepath.Join(e.data, "episodes", "*")); err != nil || len(left) > 0 {
		t.Errorf("directories are left: %v (%v)", left, err)
	}
}

// TestAnEpisodeWhoseContainerIsKilledIsMasked removes the container of one of two episodes, and
// then kills the process that serves them.
func TestAnEpisodeWhoseContainerIsKilledIsMasked(t *testing.T) {
	e, server := startContained(t)
	lost, other := e.begin(t, ""), e.begin(t, "")
	e.effect(t, lost, "lost")
	e.effect(t, other, "one")
	victim := ""
	for _, id := range sandboxesOf(t, "", server) {
		source, err := docker("", "inspect", "--format", "{{range .Mounts}}{{.Source}}{{end}}", id)
		if err != nil {
			continue // it has ended in the meantime
		}
		if text, err := os.ReadFile(filepath.Join(source, "lines.txt")); err == nil && string(text) == "lost\n" {
			victim = id
		}
	}
	if _, err := docker("", "kill", victim); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	r := e.effect(t, lost, "more")
	if !r.Done || r.Reward != nil || !r.Metadata.Masked || r.Metadata.FailureKind != "worker-lost" && r.Metadata.FailureKind != "outcome-unknown" {
		t.Errorf("the episode ended with %+v", r)
	}
	if took := time.Since(began); took > time.Minute {
		t.Errorf("it took %v", took)
	}
	e.ends(t, other, 1)
	e.effect(t, e.begin(t, ""), "one")
	e.kill9(t)
	noSandboxes(t, "", server)
	eventually(t, soon, "the directories are to be gone", func() error {
		if left := e.directories(t); len(left) > 0 {
			return fmt.Errorf("%v are left", left)
		}
		return nil
	})
}
