package stories

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	callyard "github.com/callyard/callyard/clients/go"

	"github.com/callyard/callyard/e2e/fabric"
)

// under is a call in flight that waits at a gate.
type under struct {
	answer *callyard.CallToolResponse
	err    error
}

func begins(t *testing.T, c *callyard.ClientWithResponses, server string, l ledger, id string) <-chan under {
	t.Helper()
	over := make(chan under, 1)
	go func() {
		a, err := c.CallToolWithResponse(t.Context(), server, "effect", nil, l.arguments(id))
		over <- under{a, err}
	}()
	l.happened(t, id, 1)
	return over
}

// waitForCleanExit waits until a part has exited by itself.
func waitForCleanExit(t *testing.T, c *fabric.Container) {
	t.Helper()
	eventually(t, c.Name+" ending", func() error {
		running, code, err := c.Running(t.Context())
		if err == nil && running {
			err = errors.New("it runs")
		}
		if err == nil && code != 0 {
			t.Errorf("%s ends with code %d", c.Name, code)
		}
		return err
	})
}

func (u under) succeeded(t *testing.T) {
	t.Helper()
	if u.err != nil || u.answer.JSON200 == nil {
		t.Errorf("the call that was under way: %v %+v", u.err, u.answer)
	}
}

func TestDrainedWorkerFinishesItsCalls(t *testing.T) {
	f := sharedFabric(t)
	c, l := caller(t, f, f.URL()), newLedger(t)
	how, err := scripted(fabric.Servers{"leaving": {"command": "/scripted-server", "args": []string{"echo"}}})
	must(t, err)
	w, err := f.AddWorker(t.Context(), how)
	must(t, err)
	over := begins(t, c, "leaving", l, "drained")
	must(t, w.Signal(t.Context(), "SIGTERM"))
	eventually(t, "nobody taking calls of the server", func() error {
		a, err := c.CallToolWithResponse(t.Context(), "leaving", "echo", nil, map[string]any{"text": "late"})
		if err == nil && a.StatusCode() != http.StatusServiceUnavailable {
			err = fmt.Errorf("a call is answered with %s %s", a.Status(), a.Body)
		}
		return err
	})
	l.open(t)
	(<-over).succeeded(t)
	waitForCleanExit(t, w)
	if got := l.count(t, "drained"); got != 1 {
		t.Errorf("it ran %d times", got)
	}
}

func TestDrainedFrontDoorAnswersAcceptedCalls(t *testing.T) {
	f := sharedFabric(t)
	l := newLedger(t)
	door, err := f.AddFrontDoor(t.Context(), fabric.Part{})
	must(t, err)
	must(t, f.Serves(t.Context(), "worker-1", "lab"))
	c := caller(t, f, door.URL())
	over := begins(t, c, "lab", l, "let in")
	must(t, door.Signal(t.Context(), "SIGTERM"))
	eventually(t, "the door saying that it closes", func() error {
		r, err := http.NewRequestWithContext(t.Context(), "GET", door.URL()+"/readyz", nil)
		if err != nil {
			return err
		}
		resp, err := httpClient(t).Do(r)
		if err != nil {
			return nil // it has closed already
		}
		defer resp.Body.Close()
		if resp.StatusCode == http.StatusOK {
			return errors.New("it is ready")
		}
		return nil
	})
	l.open(t)
	(<-over).succeeded(t)
	waitForCleanExit(t, door)
	// The others continue.
	calls(t, caller(t, f, f.URL()), "demo", "echo", map[string]any{"message": "still here"})
}
