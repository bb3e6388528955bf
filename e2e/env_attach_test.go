package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/callyard/callyard/internal/launch/attach/attachtest"
	"github.com/callyard/callyard/pkg/bus/porttest"
)

// nonceProgram is an attached program that stores the nonces of each session.
type nonceProgram struct {
	attachtest.Program
	mu    sync.Mutex
	of    map[string][]string
	ended int
	told  map[string]int // counts of the clocks and seeds of calls
}

func newNonceProgram(instance string) *nonceProgram {
	k := &nonceProgram{of: make(map[string][]string), told: make(map[string]int)}
	k.Instance, k.InFlight = instance, 8
	k.Tools = `[{"name":"keep","description":"Keeps a nonce.","inputSchema":{"type":"object","properties":{"nonce":{"type":"string"}}}}]`
	k.Call = func(ctx context.Context, _ string, arguments json.RawMessage) string {
		var in struct{ Nonce string }
		_ = json.Unmarshal(arguments, &in)
		k.mu.Lock()
		defer k.mu.Unlock()
		session, meta := attachtest.SessionOf(ctx), attachtest.MetaOf(ctx)
		k.told[meta.Clock+" "+meta.Seed]++
		k.of[session] = append(k.of[session], in.Nonce)
		return fmt.Sprintf(`{"content":[{"type":"text","text":%q}]}`, strings.Join(k.of[session], " "))
	}
	k.Ended = func(session string) {
		k.mu.Lock()
		defer k.mu.Unlock()
		delete(k.of, session)
		k.ended++
	}
	return k
}

// has returns the numbers of open and of ended sessions that the program knows.
func (k *nonceProgram) has() (open, ended int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.of), k.ended
}

// callsOfPrograms counts the calls of programs by clock and seed.
func callsOfPrograms(programs ...*nonceProgram) map[string]int {
	all := make(map[string]int)
	for _, k := range programs {
		k.mu.Lock()
		for told, n := range k.told {
			all[told] += n
		}
		k.mu.Unlock()
	}
	return all
}

// TestEpisodesKeepStateAtOneOfSeveralAttachedPrograms runs episodes at two programs, and then
// kills one of these. Its episodes are masked.
func TestEpisodesKeepStateAtOneOfSeveralAttachedPrograms(t *testing.T) {
	const episodes, steps = 20, 5
	key, servers := newAttachKey(t, "keeper")
	at := porttest.Address(t)
	e := startEnv(t, servers, map[string]string{
		"env.yaml": `
environments:
  kept:
    tools: ["keeper/keep"]
    isolation: session
    clock: 2026-01-31T12:00:00Z
    state: {seed: true}
    tasks_file: tasks.jsonl
    reward: {weights: {selection: 0, format: 0, execution: 1}}
`, "tasks.jsonl": `{"question":"Keep it.","expected":["keep"]}`,
	}, "CALLYARD_WORKER_ATTACH_LISTEN="+at)
	one, two := newNonceProgram("one"), newNonceProgram("two")
	var attached []*attachtest.Attached
	for _, k := range []*nonceProgram{one, two} {
		a, err := k.Attach(t.Context(), "ws://"+at, "keeper", key)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(a.Kill)
		attached = append(attached, a)
	}
	for _, name := range []string{"one", "two"} {
		e.says(t, "program attached.*instance.*"+name)
	}
	var sessions [episodes]string
	eventually(t, startWithin, "the front door knows the server", func() error {
		a, err := http.Post(e.url+"/reset", "application/json", strings.NewReader(`{"seed":7}`))
		if err != nil {
			return err
		}
		defer a.Body.Close()
		var r reply
		if err := json.NewDecoder(a.Body).Decode(&r); err != nil || a.StatusCode != http.StatusOK {
			return fmt.Errorf("%s %w", a.Status, err)
		}
		sessions[0] = r.Metadata.SessionID
		return nil
	})
	for i := range sessions[1:] {
		sessions[i+1] = e.begin(t, "")
	}
	var work sync.WaitGroup
	for i, session := range sessions {
		work.Go(func() {
			want := ""
			for step := range steps {
				nonce := fmt.Sprintf("n%d-%d", i, step)
				want = strings.TrimSpace(want + " " + nonce)
				r := e.step(t, session, "keep", map[string]any{"nonce": nonce})
				if r.Observation.Result == nil || string(r.Observation.Result.Data) != `"`+want+`"` {
					t.Errorf("episode %d sees %+v, want %q", i, r.Observation, want)
				}
			}
		})
	}
	work.Wait()
	for _, k := range []*nonceProgram{one, two} {
		if open, ended := k.has(); open != episodes/2 || ended != 0 {
			t.Errorf("a program has %d sessions, and %d have ended; want %d and 0", open, ended, episodes/2)
		}
	}
	if told := callsOfPrograms(one, two); len(told) != 2 || told["2026-01-31T12:00:00Z 7"] != steps || told["2026-01-31T12:00:00Z 0"] != (episodes-1)*steps {
		t.Errorf("the calls came with the clocks and seeds %v", told) // the first episode has a seed
	}
	attached[0].Kill()
	e.says(t, "program detached")
	masked := 0
	for _, session := range sessions {
		r := e.step(t, session, "keep", map[string]any{"nonce": "last"})
		switch {
		case r.Metadata.Masked && r.Done && r.Reward == nil && (r.Metadata.FailureKind == "worker-lost" || r.Metadata.FailureKind == "outcome-unknown"): // its end may not be known yet
			masked++
		default:
			e.ends(t, session, 1)
		}
	}
	if masked != episodes/2 {
		t.Errorf("%d episodes were masked, want %d", masked, episodes/2)
	}
	e.stop(t)
	attached[1].Wait()
	if open, ended := two.has(); open != 0 || ended != episodes/2 {
		t.Errorf("the program that stayed has %d sessions, and is told that %d have ended", open, ended)
	}
}
