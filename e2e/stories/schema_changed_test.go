package stories

import (
	"fmt"
	"strings"
	"testing"
	"time"

	callyard "github.com/callyard/callyard/clients/go"

	"github.com/callyard/callyard/e2e/fabric"
)

func TestApprovedCallDoesNotRunIfTheToolChanged(t *testing.T) {
	f := sharedFabric(t)
	c := caller(t, f, f.URL())
	before, err := scripted(fabric.Servers{"tickets": {"command": "/scripted-server", "args": []string{"echo"}}})
	must(t, err)
	w, err := f.AddWorker(t.Context(), before)
	must(t, err)
	h := held(t, c, "tickets", "echo", map[string]any{"text": "open a ticket"})

	// While the approval is pending, the server is replaced. Its tool has the same name but
	// different arguments.
	after, err := f.AddWorker(t.Context(), fabric.Worker{Servers: fabric.Servers{"tickets": {"command": "/demo"}}})
	must(t, err)
	defer func() { must(t, after.Stop(t.Context(), time.Minute)) }()
	must(t, w.Stop(t.Context(), time.Minute))
	eventually(t, "the new tool being the only one", func() error {
		a, err := c.ListServerToolsWithResponse(t.Context(), "tickets")
		if err == nil && (strings.Contains(string(a.Body), `"text"`) || !strings.Contains(string(a.Body), `"message"`)) {
			err = fmt.Errorf("%s %s", a.Status(), a.Body)
		}
		return err
	})
	decides(t, f, "approve", h)
	end := ended(t, c, string(h.CallID))
	if end.State != callyard.CallStateFailed || end.Result != nil || end.Problem == nil || !strings.Contains(end.Problem.Detail, "changed the definition of tool") {
		t.Errorf("the call ends as %+v, %+v", end, end.Problem)
	}
}
