package stories

import (
	"testing"

	callyard "github.com/callyard/callyard/clients/go"
)

func TestADeniedCallNeverRuns(t *testing.T) {
	f := sharedFabric(t)
	c, l := caller(t, f, f.URL()), newLedger(t)
	l.open(t)
	h := held(t, c, "office", "effect", l.arguments("denied"))
	if h.ConfirmationID != nil {
		t.Error("a call that people decide came with a token for its caller")
	}
	if got := looks(t, c, string(h.CallID)); got.State != callyard.CallStateHeld {
		t.Errorf("before the decision the call is %s", got.State)
	}
	decides(t, f, "deny", h)
	end := ended(t, c, string(h.CallID))
	if end.State != callyard.CallStateDenied || len(end.Decisions) != 1 || end.Result != nil {
		t.Errorf("the call ends as %+v", end)
	}
	if got := l.count(t, "denied"); got != 0 {
		t.Errorf("it ran %d times", got)
	}
	// A late decision has no effect.
	if status, body := asPerson(t, f, "POST", "/approvals/"+string(h.ApprovalID)+"/decisions", `{"kind":"approve","digest":"sha256:any"}`); status < 400 {
		t.Errorf("approving what was denied: %d %s", status, body)
	}
	if got := looks(t, c, string(h.CallID)); got.State != callyard.CallStateDenied || l.count(t, "denied") != 0 {
		t.Errorf("afterwards the call is %s", got.State)
	}
}
