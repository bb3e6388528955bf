package stories

import (
	"testing"

	callyard "github.com/callyard/callyard/clients/go"
)

func TestUndecidedCallExpires(t *testing.T) {
	f := sharedFabric(t)
	c := caller(t, f, f.URL())
	h := held(t, c, "office", "add", map[string]any{"a": 1, "b": 2}) // the policy allows two seconds
	end := ended(t, c, string(h.CallID))
	if end.State != callyard.CallStateExpired || end.Result != nil {
		t.Errorf("the call ends as %+v", end)
	}
	if status, body := asPerson(t, f, "POST", "/approvals/"+string(h.ApprovalID)+"/decisions", `{"kind":"approve","digest":"sha256:any"}`); status < 400 {
		t.Errorf("approving what is over: %d %s", status, body)
	}
	if got := looks(t, c, string(h.CallID)); got.State != callyard.CallStateExpired {
		t.Errorf("afterwards the call is %s", got.State)
	}
}
