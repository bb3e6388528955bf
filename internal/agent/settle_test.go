package agent_test

import (
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/agent"
	"github.com/callyard/callyard/internal/agent/modeltest"
)

// asksFor returns an answer with two calls.
func asksFor(ids string) modeltest.Turn {
	return modeltest.Turn{Calls: []modeltest.Call{{ID: ids + "1", Name: "s__one", Arguments: `{"n":"` + ids + `"}`}, {ID: ids + "2", Name: "s__one", Arguments: "{}"}}}
}

// results returns the call results in the last request.
func (s *stage) results() (texts string) {
	asked := s.server.Asked()
	for _, r := range asked[len(asked)-1].Results {
		texts += r.Text + "\n"
	}
	return texts
}

// TestAPromptFollowsCallsThatDidNotRun sends another prompt after an answer whose calls did not
// run: one that was truncated, and one that a budget ended. The API refuses a conversation in which
// a call has no result, so without results for them the session could never be continued.
func TestAPromptFollowsCallsThatDidNotRun(t *testing.T) {
	stops := map[string]string{"openai:m": "length", "responses:m": "max_output_tokens", "anthropic:m": "max_tokens", "gemini:m": "MAX_TOKENS"}
	for _, spec := range specs {
		for name, reopened := range map[string]bool{"in the session": false, "in the session that is continued": true} {
			cut := asksFor("a")
			cut.Text, cut.Stop = "I look", stops[spec]
			s := newStage(t, spec, modeltest.Script{cut, {Text: "The end."}}, "s__one")
			if report, err := s.Ask(t.Context(), "Do it."); err != nil || report.Stop != agent.Truncated {
				t.Fatalf("%s: %+v, %v", spec, report, err)
			}
			if reopened {
				s.reopen(t)
			}
			report, err := s.Ask(t.Context(), "Go on.")
			if err != nil || report.Answer != "The end." || s.fabric.sent != 0 {
				t.Fatalf("%s, truncated, %s: %+v, %v; %v", spec, name, report, err, s.server.Refused())
			}
			if got := s.results(); strings.Count(got, "your answer was truncated") != 2 {
				t.Errorf("%s: the model was told %q", spec, got)
			}
		}
		s := newStage(t, spec, modeltest.Script{asksFor("a"), {Text: "The end."}}, "s__one")
		s.Limits.Calls = 1
		if report, err := s.Ask(t.Context(), "Do it."); err != nil || report.Stop != agent.Budget {
			t.Fatalf("%s: %+v, %v", spec, report, err)
		}
		report, err := s.Ask(t.Context(), "Do something else.")
		if err != nil || report.Answer != "The end." || s.fabric.sent != 0 {
			t.Fatalf("%s, a spent budget: %+v, %v; %v", spec, report, err, s.server.Refused())
		}
		if got := s.results(); strings.Count(got, "the budget of the user's prompt was spent") != 2 {
			t.Errorf("%s: the model was told %q", spec, got)
		}
	}
}

// TestAPromptFollowsCallsWithoutAnAnswer loses the response of Callyard and sends another prompt:
// the calls are sent again with their idempotency key, and run once.
func TestAPromptFollowsCallsWithoutAnAnswer(t *testing.T) {
	for _, spec := range specs {
		s := newStage(t, spec, modeltest.Script{asksFor("a"), {Text: "The end."}}, "s__one")
		s.fabric.crash = 1
		if _, err := s.Ask(t.Context(), "Do it."); err == nil {
			t.Fatal("the request was answered")
		}
		report, err := s.Ask(t.Context(), "And this.")
		if err != nil || report.Answer != "The end." || s.fabric.sent != 2 || len(report.Calls) != 2 {
			t.Fatalf("%s: %+v, %v; %d calls ran; %v", spec, report, err, s.fabric.sent, s.server.Refused())
		}
	}
}
