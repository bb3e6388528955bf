package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/mcptest"
)

// TestTheExpectedCallsOfADataSetRunOnceThroughKills runs the labelled calls of a data set, kills
// the command while results arrive, and lets the same command finish: each call has its effect once,
// and a further run creates no second batch.
func TestTheExpectedCallsOfADataSetRunOnceThroughKills(t *testing.T) {
	const n, kills = 2000, 3
	d := startUp(t, setup{servers: serversFile(t, map[string]entry{"books": scripted(mcptest.Echo)})})
	d.waitServers(t, 1, "books")
	dir := t.TempDir()
	effects, results := filepath.Join(dir, "effects"), filepath.Join(dir, "run", "labels", "results.jsonl")
	gate := filepath.Join(dir, "gate")
	evalTasks(t, filepath.Join(dir, "data.json"), n, "effect", func(i int) map[string]any {
		arguments := map[string]any{"path": effects, "id": fmt.Sprint("e", i)}
		if i == n-1 {
			arguments["after"] = gate // prevents the command from ending before it is killed
		}
		return arguments
	})
	command := func() *process {
		return start(t, program{
			name: "callyard eval run", path: filepath.Join(bin(t), "callyard"), dir: dir, env: []string{"CALLYARD_URL=" + d.url},
			args: []string{"eval", "run", "run", "--data", "mcptoolbench:data.json", "--server", "library=books"},
		})
	}
	for kill := range kills {
		p := command()
		want := 1 + kill*n/(kills+1)
		p.eventually(t, time.Minute, fmt.Sprintf("having %d results", want), func() error {
			s, err := readState(results)
			if err == nil && s.Tally.Lines < want {
				err = fmt.Errorf("it has %d", s.Tally.Lines)
			}
			return err
		})
		p.kill9(t)
	}
	write(t, gate, "")
	p := command()
	if code := p.wait(t, 2*time.Minute); code != 0 {
		t.Fatalf("it ends with %d: %s", code, p.out.String())
	}
	if once, twice := countEffects(t, effects); once != n || twice != 0 {
		t.Errorf("%d calls had an effect, %d of them twice; want %d", once, twice, n)
	}
	var e struct{ Calls, Reached, Missing int }
	raw, err := os.ReadFile(filepath.Join(dir, "run", "labels", "execution.json"))
	if err != nil || json.Unmarshal(raw, &e) != nil || e.Calls != n || e.Reached != n || e.Missing != 0 {
		t.Errorf("%s, %v", raw, err)
	}
	p = command()
	if code := p.wait(t, time.Minute); code != 0 {
		t.Errorf("once more, it ends with %d: %s", code, p.out.String())
	}
	if once, twice := countEffects(t, effects); once != n || twice != 0 {
		t.Errorf("once more: %d effects, %d of them twice", once, twice)
	}
}
