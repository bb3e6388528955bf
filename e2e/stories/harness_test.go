package stories

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	callyard "github.com/callyard/callyard/clients/go"

	"github.com/callyard/callyard/e2e/fabric"
	"github.com/callyard/callyard/internal/mcptest"
)

// patience limits every wait. It is not an expectation.
const patience = 2 * time.Minute

// sharedFabric returns the fabric of all stories that leave it unchanged.
func sharedFabric(t *testing.T) *fabric.Fabric { return all.fabric.of(t) }

// sharedCluster returns the fabric of the stories in which a NATS node stops and starts
// again: three nodes, two front doors, two workers.
func sharedCluster(t *testing.T) *fabric.Fabric { return all.cluster.of(t) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// eventually repeats check until it returns no error.
func eventually(t *testing.T, what string, check func() error) {
	t.Helper()
	if err := fabric.Until(t.Context(), check); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// httpClient returns a client that closes its connections at the end of the test.
func httpClient(t *testing.T) *http.Client {
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: patience}
}

// caller returns the generated client of a front door.
func caller(t *testing.T, f *fabric.Fabric, url string) *callyard.ClientWithResponses {
	t.Helper()
	c, err := callyard.New(url, f.Key, callyard.WithHTTPClient(httpClient(t)))
	must(t, err)
	return c
}

func resultText(t *testing.T, r *callyard.CallToolResult) string {
	t.Helper()
	if r == nil || len(r.Content) == 0 || r.Content[0].Text == nil {
		t.Fatalf("the result has no text: %+v", r)
	}
	return *r.Content[0].Text
}

// calls calls a tool that runs at once, and returns its result.
func calls(t *testing.T, c *callyard.ClientWithResponses, server, tool string, arguments map[string]any) *callyard.CallToolResult {
	t.Helper()
	a, err := c.CallToolWithResponse(t.Context(), server, tool, nil, arguments)
	if err == nil {
		err = callyard.Check(a.HTTPResponse, a.Body)
	}
	if err != nil || a.JSON200 == nil {
		t.Fatalf("%s of %s: %v %+v", tool, server, err, a)
	}
	return a.JSON200
}

// held calls a tool that needs an approval.
func held(t *testing.T, c *callyard.ClientWithResponses, server, tool string, arguments map[string]any) callyard.ConfirmationRequest {
	t.Helper()
	a, err := c.CallToolWithResponse(t.Context(), server, tool, nil, arguments)
	if err == nil {
		err = callyard.Check(a.HTTPResponse, a.Body)
	}
	if err != nil || a.JSON202 == nil {
		t.Fatalf("%s of %s is not held: %v %+v", tool, server, err, a)
	}
	h, err := a.JSON202.AsConfirmationRequest()
	if err != nil || !h.RequiresConfirmation {
		t.Fatalf("%s of %s is not held: %v %s", tool, server, err, a.Body)
	}
	return h
}

// stored makes a durable call and does not wait for it. If a front door cannot accept
// it at the moment, it is sent again with the same key.
func stored(t *testing.T, c *callyard.ClientWithResponses, server, tool string, arguments any) (id string) {
	t.Helper()
	text, err := json.Marshal(arguments)
	must(t, err)
	key, later := rand.Text(), "respond-async"
	eventually(t, "the call being stored", func() error {
		a, err := c.CreateCallWithResponse(t.Context(), &callyard.CreateCallParams{Prefer: &later, IdempotencyKey: &key}, callyard.CallRequest{Server: server, Tool: tool, Arguments: text})
		if err == nil {
			err = callyard.Check(a.HTTPResponse, a.Body)
		}
		if err != nil {
			return err
		}
		call, err := a.JSON202.AsAcceptedCall()
		if err != nil || call.ID == "" {
			return fmt.Errorf("the answer names no call: %w %s", err, a.Body)
		}
		id = call.ID
		return nil
	})
	return id
}

// looks returns the current state of a call.
func looks(t *testing.T, c *callyard.ClientWithResponses, id string) callyard.Call {
	t.Helper()
	a, err := c.GetCallWithResponse(t.Context(), id, nil)
	if err == nil {
		err = callyard.Check(a.HTTPResponse, a.Body)
	}
	if err != nil || a.JSON200 == nil {
		t.Fatalf("looking at a call: %v %+v", err, a)
	}
	return *a.JSON200
}

// ended waits for the end of a call. It asks again if a front door does not know the outcome yet.
func ended(t *testing.T, c *callyard.ClientWithResponses, id string) (call callyard.Call) {
	t.Helper()
	seconds := 10
	eventually(t, "the end of the call "+id, func() error {
		a, err := c.GetCallWithResponse(t.Context(), id, &callyard.GetCallParams{Wait: &seconds})
		if err == nil {
			err = callyard.Check(a.HTTPResponse, a.Body)
		}
		if err != nil {
			return err
		}
		if call = *a.JSON200; call.Ended == nil {
			return fmt.Errorf("it is %s", call.State)
		}
		return nil
	})
	return call
}

// asPerson sends a request to the approver's API as an approver of the group ops.
func asPerson(t *testing.T, f *fabric.Fabric, method, path, body string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, f.ApproverURL()+path, strings.NewReader(body))
	must(t, err)
	r.Header.Set("X-API-Key", f.PersonKey)
	r.Header.Set("Content-Type", "application/json")
	resp, err := httpClient(t).Do(r)
	must(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	must(t, err)
	return resp.StatusCode, string(text)
}

// decides approves or denies through the API, with the digest of the arguments.
func decides(t *testing.T, f *fabric.Fabric, kind string, h callyard.ConfirmationRequest) {
	t.Helper()
	var seen struct {
		Digest string `json:"arguments_digest"`
	}
	eventually(t, "the approver showing the approval", func() error {
		status, body := asPerson(t, f, "GET", "/approvals/"+string(h.ApprovalID), "")
		if err := json.Unmarshal([]byte(body), &seen); err != nil || status != http.StatusOK || seen.Digest == "" {
			return fmt.Errorf("%d %s", status, body)
		}
		return nil
	})
	if status, body := asPerson(t, f, "POST", "/approvals/"+string(h.ApprovalID)+"/decisions", fmt.Sprintf(`{"kind":%q,"digest":%q}`, kind, seen.Digest)); status != http.StatusOK {
		t.Fatalf("to %s: %d %s", kind, status, body)
	}
}

// ledger is a file in which the tool effect records its runs, and a gate at which it waits
// before it answers.
type ledger struct{ effects, gate string }

func newLedger(t *testing.T) ledger {
	t.Helper()
	dir, err := os.MkdirTemp(all.effects, "") //nolint:usetesting // below the folder that the workers see
	must(t, err)
	must(t, os.Chmod(dir, 0o777))
	return ledger{filepath.Join(dir, "effects"), filepath.Join(dir, "gate")}
}

// arguments returns the arguments of an effect that waits at the gate, with paths as its server
// sees them.
func (l ledger) arguments(id string) map[string]any {
	inside := func(path string) string {
		rel, _ := filepath.Rel(all.effects, path)
		return "/effects/" + rel
	}
	return map[string]any{"path": inside(l.effects), "id": id, "after": inside(l.gate)}
}

// lines returns calls of a batch, line-0 and so on, each with an effect of that name.
func (l ledger) lines(t *testing.T, n int) (list []callyard.BatchCall) {
	t.Helper()
	for i := range n {
		id := fmt.Sprint("line-", i)
		text, err := json.Marshal(l.arguments(id))
		must(t, err)
		list = append(list, callyard.BatchCall{CustomID: &id, Server: "lab", Tool: "effect", Arguments: text})
	}
	return list
}

// open lets the calls at the gate continue.
func (l ledger) open(t *testing.T) {
	t.Helper()
	must(t, os.WriteFile(l.gate, nil, 0o644))
	must(t, os.Chmod(l.gate, 0o644))
}

// count returns the number of times that an effect happened.
func (l ledger) count(t *testing.T, id string) int {
	t.Helper()
	seen, err := mcptest.ReadEffects(l.effects)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return seen[id]
}

// happened waits until an effect has happened that number of times.
func (l ledger) happened(t *testing.T, id string, times int) {
	t.Helper()
	eventually(t, fmt.Sprintf("the effect %s happening %d times", id, times), func() error {
		if got := l.count(t, id); got != times {
			return fmt.Errorf("it happened %d times", got)
		}
		return nil
	})
}

// part returns the container of a worker by the worker's ID.
func part(t *testing.T, f *fabric.Fabric, worker *string) *fabric.Container {
	t.Helper()
	if worker == nil {
		t.Fatal("nobody says which worker it was")
	}
	name, _, _ := strings.Cut(*worker, "_")
	c := f.Part(name)
	if c == nil {
		t.Fatalf("there is no worker %s", *worker)
	}
	return c
}

// busyWorker returns the worker with calls in flight.
func busyWorker(t *testing.T, c *callyard.ClientWithResponses) (id *string) {
	t.Helper()
	eventually(t, "a worker having the call", func() error {
		a, err := c.ListWorkersWithResponse(t.Context())
		if err == nil {
			err = callyard.Check(a.HTTPResponse, a.Body)
		}
		if err != nil {
			return err
		}
		for _, w := range a.JSON200.Workers {
			if w.InFlight > 0 {
				id = &w.ID
				return nil
			}
		}
		return errors.New("none has")
	})
	return id
}

// restartWorker restarts a killed worker and waits until it is available.
func restartWorker(t *testing.T, f *fabric.Fabric, c *callyard.ClientWithResponses, w *fabric.Container, gone string) {
	t.Helper()
	must(t, w.Start(t.Context()))
	eventually(t, "the worker being back, and the old one forgotten", func() error {
		a, err := c.GetServerWithResponse(t.Context(), "lab")
		if err == nil {
			err = callyard.Check(a.HTTPResponse, a.Body)
		}
		if err != nil {
			return err
		}
		ready := 0
		for _, at := range a.JSON200.Workers {
			if at.ID != gone && at.InitializationState == callyard.ServerWorkerInitializationStateInitialized {
				ready++
			}
		}
		if ready != 2 || len(a.JSON200.Workers) != 2 {
			return fmt.Errorf("%s", a.Body)
		}
		return nil
	})
}
