package e2e

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

// branchFiles is an environment whose processes get a seed and a time.
func branchFiles() map[string]string {
	files := effectFiles(0)
	files["env.yaml"] = strings.ReplaceAll(strings.ReplaceAll(files["env.yaml"], "warm: 0", "seed: true"), `"scripted/echo"`, `"scripted/env"`)
	files["env.yaml"] += "    clock: 2026-01-31T12:00:00Z\n"
	return files
}

// snapshot snapshots the state of an episode and returns its name.
func (e *environments) snapshot(t *testing.T, session string) string {
	t.Helper()
	a, err := send(client(t), e.url, http.MethodPost, "/snapshot", `{"session_id":"`+session+`"}`)
	if err != nil || a.status != http.StatusOK {
		t.Fatalf("the snapshot: %d %s (%v)", a.status, a.body, err)
	}
	var kept struct{ Snapshot string }
	decode(t, a.body, &kept)
	return kept.Snapshot
}

// TestEpisodesBranchWithSeparateSeedAndTime begins episodes from the state in the middle of another
// one. Each process gets its own seed and the time of the environment.
func TestEpisodesBranchWithSeparateSeedAndTime(t *testing.T) {
	e := startEnv(t, serversFile(t, map[string]entry{"scripted": scripted("echo")}), branchFiles())
	begin := func(seed int, snapshot string) string {
		t.Helper()
		return e.post(t, "/reset", map[string]any{"seed": seed, "snapshot": snapshot}).Metadata.SessionID
	}
	effect := func(session, id string) {
		t.Helper()
		if r := e.step(t, session, "effect", map[string]any{"path": "lines.txt", "id": id}); r.Observation.Error != nil {
			t.Errorf("effect %s: %+v", id, r.Observation.Error)
		}
	}
	finish := func(session string, want float64) {
		t.Helper()
		if r := e.step(t, session, "finish", map[string]any{}); r.Reward == nil || *r.Reward != want {
			t.Errorf("the episode ended with %+v, want the reward %v", r, want)
		}
	}
	first := begin(7, "")
	r := e.step(t, first, "env", map[string]any{})
	for _, want := range []string{"CALLYARD_SEED=7", "CALLYARD_CLOCK=2026-01-31T12:00:00Z"} {
		if r.Observation.Result == nil || !strings.Contains(string(r.Observation.Result.Data), want) {
			t.Errorf("the process is not told %s: %+v", want, r.Observation)
		}
	}
	empty := e.snapshot(t, first)
	effect(first, "one")
	middle := e.snapshot(t, first)
	if empty == middle {
		t.Error("two states have one name")
	}
	effect(first, "two")
	finish(first, 0)
	finish(begin(8, middle), 1) // the state after the labelled call
	other := begin(9, middle)
	if again := e.snapshot(t, other); again != middle {
		t.Errorf("the same state is %s, and was %s", again, middle)
	}
	effect(other, "two")
	finish(other, 0)
	solved := begin(9, empty)
	effect(solved, "one")
	finish(solved, 1)
	body, err := json.Marshal(map[string]any{"snapshot": "unknown"})
	if err != nil {
		t.Fatal(err)
	}
	if a, err := send(client(t), e.url, http.MethodPost, "/reset", string(body)); err != nil || a.status != http.StatusNotFound {
		t.Errorf("an unknown snapshot: %d %s (%v)", a.status, a.body, err)
	}
	e.stop(t)
	if left, dirs := e.leftovers(t); left > 0 || dirs > 0 {
		t.Errorf("%d processes and %d directories are left", left, dirs)
	}
}
