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
func (s *testAgent) results() (texts string) {
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
			s := newTestAgent(t, spec, modeltest.Script{cut, {Text: "The end."}}, "s__one")
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
		for name, reopened := range map[string]bool{"in the session": false, "in the session that is continued": true} {
			s := newTestAgent(t, spec, modeltest.Script{asksFor("a"), {Text: "The end."}}, "s__one")
			s.Limits.Calls = 1
			if report, err := s.Ask(t.Context(), "Do it."); err != nil || report.Stop != agent.Budget {
				t.Fatalf("%s: %+v, %v", spec, report, err)
			}
			if reopened {
				s.reopen(t)
			}
			report, err := s.Ask(t.Context(), "Do something else.")
			if err != nil || report.Answer != "The end." || s.fabric.sent != 0 {
				t.Fatalf("%s, a spent budget, %s: %+v, %v; %v", spec, name, report, err, s.server.Refused())
			}
			if got := s.results(); strings.Count(got, "the budget of the user's prompt was spent") != 2 {
				t.Errorf("%s: the model was told %q", spec, got)
			}
		}
	}
}

func TestAnswerThatTheAPIEndedIsTruncated(t *testing.T) {
	for spec, stops := range map[string][]string{
		"anthropic:m": {"model_context_window_exceeded", "refusal"},
		"gemini:m":    {"RECITATION", "PROHIBITED_CONTENT", "SPII", "OTHER"},
	} {
		for _, stop := range stops {
			s := newTestAgent(t, spec, modeltest.Script{{Text: "The answer is", Stop: stop}}, "s__one")
			if report, err := s.Ask(t.Context(), "Ask."); err != nil || report.Stop != agent.Truncated || report.Reason != stop {
				t.Errorf("%s, %s: %+v, %v", spec, stop, report, err)
			}
		}
	}
}

// TestCallsThatABudgetStoppedRunIfTheSessionGoesOn continues a session whose calls a budget stopped
// with a larger budget, and loses the response of Callyard. The next prompt gets the results of the
// calls, because they ran.
func TestCallsThatABudgetStoppedRunIfTheSessionGoesOn(t *testing.T) {
	for _, spec := range specs {
		s := newTestAgent(t, spec, modeltest.Script{asksFor("a"), {Text: "The end."}}, "s__one")
		s.Limits.Calls = 1
		if report, err := s.Ask(t.Context(), "Do it."); err != nil || report.Stop != agent.Budget {
			t.Fatalf("%s: %+v, %v", spec, report, err)
		}
		s.reopen(t)
		s.Limits.Calls = 2
		s.fabric.crash = 1
		if _, err := s.Ask(t.Context(), ""); err == nil || s.fabric.sent != 2 {
			t.Fatalf("%s: %v, %d calls ran", spec, err, s.fabric.sent)
		}
		s.reopen(t)
		report, err := s.Ask(t.Context(), "And this.")
		if err != nil || report.Answer != "The end." || s.fabric.sent != 2 || len(report.Calls) != 2 {
			t.Fatalf("%s: %+v, %v; %d calls ran; %v", spec, report, err, s.fabric.sent, s.server.Refused())
		}
	}
}

// TestACallWhoseArgumentsAreNotJSONIsAnswered has a model write arguments that are not JSON. The call
// is sent like any other, so that the model is told of its error, and the session can be continued.
func TestACallWhoseArgumentsAreNotJSONIsAnswered(t *testing.T) {
	for _, spec := range []string{"openai:m", "responses:m"} { // arguments are text in these APIs alone
		bad := modeltest.Turn{Calls: []modeltest.Call{{ID: "a1", Name: "s__one", Arguments: `{"n": "4`}}}
		s := newTestAgent(t, spec, modeltest.Script{bad, {Text: "The end."}}, "s__one")
		report, err := s.Ask(t.Context(), "Do it.")
		if err != nil || report.Answer != "The end." || len(report.Calls) != 1 {
			t.Fatalf("%s: %+v, %v; %v", spec, report, err, s.server.Refused())
		}
		s.reopen(t)
		if report, err := s.Ask(t.Context(), "Go on."); err != nil || report.Answer != "The end." {
			t.Errorf("%s, continued: %+v, %v; %v", spec, report, err, s.server.Refused())
		}
	}
}

// TestAPromptFollowsCallsWithoutAnAnswer loses the response of Callyard and sends another prompt:
// the calls are sent again with their idempotency key, and run once.
func TestAPromptFollowsCallsWithoutAnAnswer(t *testing.T) {
	for _, spec := range specs {
		s := newTestAgent(t, spec, modeltest.Script{asksFor("a"), {Text: "The end."}}, "s__one")
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
