package e2e

import (
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/agent/modeltest"
	"github.com/callyard/callyard/internal/mcptest"
)

// agentKills returns the number of kills. CALLYARD_AGENT_KILLS sets it, for example to 200.
func agentKills(t *testing.T) int {
	t.Helper()
	text := os.Getenv("CALLYARD_AGENT_KILLS")
	if text == "" {
		return 25
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("CALLYARD_AGENT_KILLS is a number of kills, not %q", text)
	}
	return n
}

// TestAKilledAgentContinuesAndNothingRunsTwice kills sessions of the agent at random times and
// continues them until they end: each call has its effect once.
func TestAKilledAgentContinuesAndNothingRunsTwice(t *testing.T) {
	const turns, callsEach = 5, 2
	d := startUp(t, setup{servers: serversFile(t, map[string]entry{"books": scripted(mcptest.Echo)})})
	d.waitServers(t, 1, "books")
	dir := t.TempDir()
	effects := filepath.Join(dir, "effects")
	random := rand.New(rand.NewPCG(21, 0))
	kills, want := 0, 0
	for session := 0; kills < agentKills(t); session++ {
		var script modeltest.Script
		for turn := range turns {
			var answer modeltest.Turn
			for i := range callsEach {
				answer.Calls = append(answer.Calls, modeltest.Call{
					ID: fmt.Sprintf("call_%d_%d", turn, i), Name: "books__effect",
					Arguments: fmt.Sprintf(`{"path":%q,"id":"s%d.%d.%d"}`, effects, session, turn, i),
				})
				want++
			}
			script = append(script, answer)
		}
		model := modeltest.New(append(script, modeltest.Turn{Text: "It is done."}))
		model.ByHistory = true
		api := httptest.NewServer(model)
		transcript := filepath.Join(dir, fmt.Sprintf("%d.jsonl", session))
		for try := 0; ; try++ {
			args := []string{"agent", "--model", "anthropic:test", "--base-url", api.URL, "--output", "json", "--max-repeat", "0", "-p"}
			switch lines, err := os.ReadFile(transcript); {
			case err != nil || !strings.Contains(string(lines), `"type":"user"`):
				_ = os.Remove(transcript) // it was killed before it had a prompt
				args = append(args, "--transcript", transcript, "Do it.")
			case strings.Contains(string(lines), `"type":"end"`):
				args = nil
			default:
				args = append(args, "--resume", transcript)
			}
			if args == nil {
				break
			}
			p := start(t, program{name: "callyard agent", path: filepath.Join(bin(t), "callyard"), args: args, dir: dir, env: []string{"CALLYARD_URL=" + d.url, "ANTHROPIC_API_KEY=k", "HOME=" + dir}})
			if try < 20 && !p.EndsWithin(time.Duration(random.IntN(160))*time.Millisecond) {
				_ = p.Cmd.Process.Kill() // it may be ending right now
				if p.wait(t, time.Minute) == -1 {
					kills++
					continue
				}
			}
			if code := p.wait(t, time.Minute); code != 0 {
				t.Fatalf("session %d ends with %d: %s; refused: %v", session, code, p.out.String(), model.Refused())
			}
		}
		if refused := model.Refused(); len(refused) > 0 {
			t.Errorf("session %d: the model's API refused %v", session, refused)
		}
		api.Close()
	}
	if once, twice := countEffects(t, effects); once != want || twice != 0 {
		t.Errorf("%d calls had an effect, %d of them twice; want %d", once, twice, want)
	}
	t.Logf("%d kills, %d calls", kills, want)
}
