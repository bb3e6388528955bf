package agent_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/agent"
	"github.com/callyard/callyard/internal/agent/modeltest"
)

// signedConversation is a random script in which every answer has a thought, with calls whose
// ids begin with a prefix.
func signedConversation(r *rand.Rand, prefix string) (script modeltest.Script) {
	pick := func(list ...string) string { return list[r.IntN(len(list))] }
	for range 1 + r.IntN(4) {
		t := modeltest.Turn{
			Thought: pick("Let me think about <that> & more.", "Grüße “🌍”\n\\u0041", strings.Repeat("on ", 1+r.IntN(50))),
			Text:    pick("", "", "I look.", "é <b>"),
			Piece:   1 + r.IntN(20),
		}
		for i := range 1 + r.IntN(3) {
			t.Calls = append(t.Calls, modeltest.Call{
				ID: fmt.Sprintf("%s_%d_%d", prefix, len(script), i), Name: pick("s__one", "s__two"),
				Arguments: pick("{}", `{"n":12345678901234567890}`, `{ "a" : "<é>\u00e9" }`),
			})
		}
		script = append(script, t)
	}
	return append(script, modeltest.Turn{Text: "The end.", Thought: "Done."})
}

// TestNoSessionWithSignedAnswersIsRefused runs 1,000 sessions of up to three prompts with the
// APIs that sign thoughts. Some continue in another process. The server requires every
// signature of the conversation at its position, with the text that it signs.
func TestNoSessionWithSignedAnswersIsRefused(t *testing.T) {
	signs := []string{"anthropic:m", "gemini:m", "responses:m"}
	all := 1000
	if testing.Short() {
		all = 90
	}
	sessions, requests := 0, 0
	for at, spec := range signs {
		t.Run(spec, func(t *testing.T) {
			for seed := at; seed < all; seed += len(signs) {
				requests += signedSession(t, spec, rand.New(rand.NewPCG(uint64(seed), 4)))
				sessions++
			}
		})
	}
	if sessions != all {
		t.Errorf("%d sessions ran", sessions)
	}
	t.Logf("%d sessions, %d requests", sessions, requests)
}

func signedSession(t *testing.T, spec string, r *rand.Rand) (requests int) {
	t.Helper()
	var script modeltest.Script
	prompts := 1 + r.IntN(3)
	for i := range prompts {
		script = append(script, signedConversation(r, fmt.Sprintf("toolu_%d", i))...)
	}
	s := newTestAgent(t, spec, script, "s__one", "s__two")
	s.Stream = r.IntN(2) == 0
	if r.IntN(4) == 0 {
		s.fabric.held["s__two"] = "denied"
	}
	for i := range prompts {
		if i > 0 && r.IntN(2) == 0 {
			s.reopen(t)
		}
		report, err := s.Ask(t.Context(), fmt.Sprintf("Do it, %d.", i))
		if err != nil || report.Answer != "The end." || report.Stop != agent.Answered {
			t.Fatalf("%s, prompt %d: %+v, %v; refused: %v", spec, i, report, err, s.server.Refused())
		}
	}
	if refused := s.server.Refused(); len(refused) > 0 || len(s.server.Asked()) != len(script) {
		t.Fatalf("%s: %d of %d requests; refused: %v", spec, len(s.server.Asked()), len(script), refused)
	}
	_ = s.Transcript.Close()
	return len(script)
}
