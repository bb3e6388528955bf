package agent_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/callyard/callyard/internal/agent"
	"github.com/callyard/callyard/internal/agent/model"
	"github.com/callyard/callyard/internal/agent/modeltest"
	"github.com/callyard/callyard/pkg/schema"
)

// TestACallWithoutArgumentsRuns has a model write no arguments at all, as many do for tools without
// parameters.
func TestACallWithoutArgumentsRuns(t *testing.T) {
	for _, spec := range []string{"openai:m", "responses:m"} { // arguments are text in these APIs alone
		for _, stream := range []bool{true, false} {
			s := newTestAgent(t, spec, modeltest.Script{{Calls: []modeltest.Call{{ID: "a1", Name: "s__one"}}}, {Text: "The end."}}, "s__one")
			s.Stream = stream
			report, err := s.Ask(t.Context(), "Do it.")
			if err != nil || report.Answer != "The end." || s.fabric.sent != 1 {
				t.Fatalf("%s: %+v, %v; %v", spec, report, err, s.server.Refused())
			}
			s.reopen(t)
			if report, err := s.Ask(t.Context(), "Go on."); err != nil || report.Answer != "The end." {
				t.Errorf("%s, continued: %+v, %v; %v", spec, report, err, s.server.Refused())
			}
		}
	}
}

// TestEachHeldCallIsShownWithItsOwnArguments holds two calls of one tool. Gemini gives them no ids.
func TestEachHeldCallIsShownWithItsOwnArguments(t *testing.T) {
	for _, ids := range [][2]string{{"a", "b"}, {"", ""}} {
		s := newTestAgent(t, "gemini:m", modeltest.Script{{Calls: []modeltest.Call{
			{ID: ids[0], Name: "s__risky", Arguments: `{"path":"/x"}`}, {ID: ids[1], Name: "s__risky", Arguments: `{"path":"/y"}`},
		}}, {Text: "The end."}}, "s__risky")
		s.fabric.held["s__risky"], s.person.decision = "held", agent.Approve
		report, err := s.Ask(t.Context(), "Do it.")
		if err != nil || report.Answer != "The end." || len(s.person.asked) != 2 {
			t.Fatalf("ids %q: %+v, %v after %+v; %v", ids, report, err, s.person.asked, s.server.Refused())
		}
		for i, want := range []string{`{"path":"/x"}`, `{"path":"/y"}`} {
			if got := string(s.person.asked[i].Arguments); got != want {
				t.Errorf("ids %q: call %d was shown with %s", ids, i, got)
			}
		}
	}
}

// silent is a model that never answers.
type silent struct{}

func (silent) Ask(ctx context.Context, _ *model.Request, _ func(string), _ func()) (*model.Answer, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestTheTimeEndsARequestToTheModel has a model that does not answer. The session can be continued.
func TestTheTimeEndsARequestToTheModel(t *testing.T) {
	s := newTestAgent(t, "openai:m", modeltest.Script{{Text: "The end."}}, "s__one")
	answers := s.Model
	s.Model, s.Limits = silent{}, agent.Limits{Time: time.Minute}
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		report, err := s.Ask(t.Context(), "Do it.")
		if err != nil || report.Stop != agent.Budget || report.Reason != "1m0s (--time)" || report.Steps != 1 || report.Usage.Reported || report.Usage.Input == 0 || time.Since(began) != time.Minute {
			t.Errorf("%+v, %v after %s", report, err, time.Since(began))
		}
	})
	s.Model, s.Limits = answers, agent.Limits{}
	if report, err := s.Ask(t.Context(), ""); err != nil || report.Answer != "The end." {
		t.Errorf("continued: %+v, %v", report, err)
	}
}

func TestACallThatWasNotAllowedIsARefusal(t *testing.T) {
	for kind, want := range map[schema.Kind]bool{
		schema.KindForbidden: true, schema.KindDisabled: true, schema.KindExpired: true, schema.KindInvalidArguments: false, schema.KindServerFailed: false,
	} {
		r := agent.CallResult{State: "failed", Problem: &agent.Problem{Type: "/problems/" + string(kind)}}
		if r.IsRefusal() != want {
			t.Errorf("%s: %t", kind, !want)
		}
	}
}
