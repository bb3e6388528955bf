package mcp

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/approval"
	"github.com/callyard/callyard/internal/calls"
	"github.com/callyard/callyard/internal/kit/mcpwire"
	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/pkg/schema"
)

const (
	canForms = `{"elicitation":{}}`
	canTasks = `{"extensions":{"io.modelcontextprotocol/tasks":{}}}`
	canBoth  = `{"elicitation":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}`
	approve  = `{"approval":{"action":"accept","content":{"confirm":true}}}`
)

func TestAHeldCallAsksAModernClientAndRunsOnceWhenApproved(t *testing.T) {
	f := openFabric(t, nil)
	before := f.Worker.Count()
	got := f.callAs(canForms, "/mcp/risky", "echo", `{"a":1.0}`, "").result(t)
	state := getString([]byte(got), "requestState")
	if !strings.HasPrefix(got, `{"resultType":"input_required","inputRequests":{"approval":{"method":"elicitation/create","params":{"mode":"form"`) || state == "" {
		t.Fatal(got)
	}
	if f.Worker.Count() != before {
		t.Fatal("it ran before the yes")
	}
	again := fmt.Sprintf(`,"inputResponses":%s,"requestState":%q`, approve, state)
	// A missing answer is requested again. Other arguments are another call.
	if got := f.callAs(canForms, "/mcp/risky", "echo", `{"a":1.0}`, fmt.Sprintf(`,"inputResponses":{},"requestState":%q`, state)).result(t); !strings.Contains(got, "input_required") {
		t.Error(got)
	}
	for name, a := range map[string]answer{
		"other arguments":   f.callAs(canForms, "/mcp/risky", "echo", `{"a":2}`, again),
		"other tool":        f.callAs(canForms, "/mcp/risky", "fail", `{"a":1.0}`, again),
		"an invented state": f.callAs(canForms, "/mcp/risky", "echo", `{"a":1.0}`, `,"inputResponses":`+approve+`,"requestState":"callyard:eyJjYWxsIjoiY2FsbF94In0"`),
		"a damaged state":   f.callAs(canForms, "/mcp/risky", "echo", `{"a":1.0}`, `,"inputResponses":`+approve+`,"requestState":"callyard:***"`),
	} {
		if e := a.fault(t); e.Code != mcpwire.CodeInvalidParams {
			t.Errorf("%s: %s", name, a.body)
		}
	}
	if f.Worker.Count() != before {
		t.Fatal("something ran without a yes")
	}
	var wait sync.WaitGroup
	answers := make([]answer, 5)
	requests := make([]func() answer, len(answers))
	for i := range answers {
		requests[i] = func() answer { return f.callAs(canForms, "/mcp/risky", "echo", `{"a":1.0}`, again) }
		wait.Go(func() { answers[i] = requests[i]() })
	}
	wait.Wait()
	ran := 0
	for _, a := range answers {
		if strings.Contains(a.result(t), `"got":{"a":1.0}`) {
			ran++
		}
	}
	if ran == 0 || f.Worker.Count() != before+1 {
		t.Errorf("%d answers, %d runs", ran, f.Worker.Count()-before)
	}
}

func TestAHeldCallThatIsRefusedNeverRuns(t *testing.T) {
	f := openFabric(t, nil)
	before := f.Worker.Count()
	for _, no := range []string{`{"action":"decline"}`, `{"action":"accept","content":{"confirm":false}}`} {
		state := getString([]byte(f.callAs(canForms, "/mcp/risky", "echo", `{}`, "").result(t)), "requestState")
		more := `,"inputResponses":{"approval":` + no + fmt.Sprintf(`},"requestState":%q`, state)
		if got := f.callAs(canForms, "/mcp/risky", "echo", `{}`, more).result(t); !strings.Contains(got, `"isError":true`) || !strings.Contains(got, "rejected") {
			t.Error(got)
		}
		more = fmt.Sprintf(`,"inputResponses":%s,"requestState":%q`, approve, state)
		if got := f.callAs(canForms, "/mcp/risky", "echo", `{}`, more).result(t); strings.Contains(got, `"got"`) {
			t.Errorf("a yes after a no: %s", got)
		}
	}
	if f.Worker.Count() != before {
		t.Error("it ran")
	}
}

func TestAUserWhoClosesTheQuestionIsNotAskedAgain(t *testing.T) {
	f := openFabric(t, nil)
	before := f.Worker.Count()
	state := getString([]byte(f.callAs(canForms, "/mcp/risky", "echo", `{}`, "").result(t)), "requestState")
	closed := fmt.Sprintf(`,"inputResponses":{"approval":{"action":"cancel"}},"requestState":%q`, state)
	got := []byte(f.callAs(canForms, "/mcp/risky", "echo", `{}`, closed).result(t))
	token := getString(get(get(got, "_meta"), "callyard/confirmation"), "confirmation_id")
	if getString(got, "resultType") != "complete" || token == "" || f.Worker.Count() != before {
		t.Errorf("%s", got)
	}
	// The call still waits and can be approved.
	again := fmt.Sprintf(`,"inputResponses":%s,"requestState":%q`, approve, state)
	if got := f.callAs(canForms, "/mcp/risky", "echo", `{}`, again).result(t); !strings.Contains(got, `"got":`) {
		t.Error(got)
	}
}

func TestAHeldCallAsksALegacyClientWhileItWaits(t *testing.T) {
	f := openFabric(t, nil)
	s := f.enter("/mcp/risky", canForms)
	res, err := f.client.Do(s.request(`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"echo","arguments":{"a":1.0}}}`))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	next := events(t, res)
	question := []byte(next())
	if getString(question, "method") != "elicitation/create" {
		t.Fatalf("%s", question)
	}
	s.send(`{"jsonrpc":"2.0","id":` + string(get(question, "id")) + `,"result":{"action":"accept","content":{"confirm":true}}}`)
	if got := next(); !strings.Contains(got, `"got":{"a":1.0}`) {
		t.Error(got)
	}
}

// asked calls a tool with the params in a session, and returns the request that its client receives
// during the call.
func (r *legacyClient) asked(t *testing.T, params string) (next func() string, question []byte) {
	t.Helper()
	res, err := r.f.client.Do(r.request(`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{` + params + `}}`))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = res.Body.Close() })
	next = events(t, res)
	return next, []byte(next())
}

// unanswered sends a held call in a session whose client receives a request and does not answer it.
func (f *fabric) unanswered(t *testing.T) (next func() string, question []byte) {
	t.Helper()
	next, question = f.enter("/mcp/risky", canForms).asked(t, `"name":"echo"`)
	if getString(question, "method") != "elicitation/create" {
		t.Fatalf("%s", question)
	}
	return next, question
}

// withdrawn reads the cancellation of an open request.
func withdrawn(t *testing.T, next func() string, question []byte) {
	t.Helper()
	got := []byte(next())
	if getString(got, "method") != "notifications/cancelled" || !bytes.Equal(get(get(got, "params"), "requestId"), get(question, "id")) {
		t.Fatalf("%s", got)
	}
}

func TestAQuestionInASessionEndsWithItsApproval(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(f *fabric, h *ledger.Approval) error
		want string
	}{
		"expired": {func(f *fabric, h *ledger.Approval) error {
			later := approval.New(approval.Options{Ledger: f.Calls.Ledger, Log: f.Log, Now: func() time.Time { return h.Expires.Add(time.Second) }})
			_, err := later.Reconcile(f.t.Context(), func(string) bool { return true })
			return err
		}, `"kind":"expired"`},
		"canceled over REST": {func(f *fabric, h *ledger.Approval) error {
			_, err := f.endpoint.o.Calls.Cancel(f.t.Context(), h.CallID, approval.Requester(h))
			return err
		}, `"kind":"forbidden"`},
		"confirmed over REST": {func(f *fabric, h *ledger.Approval) error {
			if _, err := f.Calls.Desk.ConfirmOwn(f.t.Context(), h.CallID, true, approval.Requester(h)); err != nil {
				return err
			}
			running, err := f.Calls.Desk.Claim(f.t.Context(), schema.DefaultTenant, h.ID, f.Calls.FrontDoor)
			if err == nil {
				_, err = f.Calls.Release(f.t.Context(), running, nil)
			}
			return err
		}, `"got":`},
	} {
		t.Run(name, func(t *testing.T) {
			f := openFabric(t, nil)
			next, question := f.unanswered(t)
			held := f.Calls.Ledger.Where(schema.AllTenants(), func(a *ledger.Approval) bool { return a.State == ledger.Pending })
			if len(held) != 1 {
				t.Fatalf("%d held calls", len(held))
			}
			if err := c.end(f, held[0]); err != nil {
				t.Fatal(err)
			}
			withdrawn(t, next, question)
			if got := next(); !strings.Contains(got, c.want) {
				t.Error(got)
			}
		})
	}
}

func TestCallThatItsClientCancelsWhileHeldNeverRuns(t *testing.T) {
	cancelRequest := func(s *legacyClient) answer {
		return s.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}`)
	}
	endSession := func(s *legacyClient) answer {
		r := s.request("")
		r.Method = http.MethodDelete
		return s.f.send(r)
	}
	for name, c := range map[string]struct {
		policy, response string // response of the client to the question; "" if it sends none
		end              func(*legacyClient) answer
	}{
		"canceled while its caller is asked":   {end: cancelRequest},
		"session ended while it is asked":      {end: endSession},
		"canceled while an approver is asked":  {policy: askPeople, end: cancelRequest},
		"canceled while it waits for approval": {policy: askPeople, response: `{"action":"accept"}`, end: cancelRequest},
	} {
		t.Run(name, func(t *testing.T) {
			f := openFabric(t, nil)
			if c.policy != "" {
				f = openJudged(t, judge(t, c.policy), nil)
			}
			before := f.Worker.Count()
			s := f.enter("/mcp/risky", canURLs)
			_, question := s.asked(t, `"name":"echo"`)
			held := f.Calls.Ledger.Where(schema.AllTenants(), func(a *ledger.Approval) bool { return a.State == ledger.Pending })
			if len(held) != 1 {
				t.Fatalf("%d held calls", len(held))
			}
			if c.response != "" {
				s.send(`{"jsonrpc":"2.0","id":` + string(get(question, "id")) + `,"result":` + c.response + `}`)
			}
			if a := c.end(s); a.status/100 != 2 {
				t.Fatalf("%d %s", a.status, a.body)
			}
			var state ledger.State
			f.WaitFor("the end of the held call", func() bool {
				a, _, err := f.Calls.Ledger.Get(t.Context(), schema.AllTenants(), held[0].ID)
				if err == nil {
					state = a.State
				}
				return state.Ended()
			})
			if state != ledger.Canceled || f.Worker.Count() != before {
				t.Errorf("it is %s, %d runs", state, f.Worker.Count()-before)
			}
		})
	}
}

func TestShutdownDoesNotWaitForConfirmations(t *testing.T) {
	f := openFabric(t, nil)
	next, question := f.unanswered(t)
	f.endpoint.drain()
	withdrawn(t, next, question)
	got := next()
	about := get(get(get([]byte(got), "result"), "_meta"), "callyard/confirmation")
	if token := getString(about, "confirmation_id"); token == "" {
		t.Error(got)
	}
}

func TestHeldCallExplainsConfirmationWithoutEventStream(t *testing.T) {
	f := openFabric(t, nil)
	r := f.enter("/mcp/risky", canForms).request(`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"echo"}}`)
	r.Header.Set("Accept", "application/json")
	got := f.send(r).result(t)
	if token := getString(get(get([]byte(got), "_meta"), "callyard/confirmation"), "confirmation_id"); token == "" || !strings.Contains(got, "POST /confirmations/"+token) {
		t.Error(got)
	}
}

func TestHeldCallExplainsConfirmationWithoutElicitation(t *testing.T) {
	f := openFabric(t, nil)
	s := f.enter("/mcp/risky", `{}`)
	for era, got := range map[string]string{
		"modern": f.call("/mcp/risky", "echo", `{}`).result(t),
		"legacy": s.send(`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"echo"}}`).result(t),
	} {
		about := get(get([]byte(got), "_meta"), "callyard/confirmation")
		token := getString(about, "confirmation_id")
		if token == "" || !strings.Contains(got, `"isError":true`) || !strings.Contains(got, "POST /confirmations/"+token) || getString(about, "call_id") == "" {
			t.Errorf("%s: %s", era, got)
		}
	}
}

// task sends a request about a task, as a client that supports the extension.
func (f *fabric) task(method, id, more string) answer {
	return f.send(f.request("POST", "/mcp/risky", modernBody(method, fmt.Sprintf(`"taskId":%q%s`, id, more), canBoth, ""), modernHeaders(method, id)...))
}

func TestHeldCallIsATaskForClientsWithTasks(t *testing.T) {
	f := openFabric(t, nil)
	before := f.Worker.Count()
	got := []byte(f.callAs(canBoth, "/mcp/risky", "echo", `{"a":1.0}`, "").result(t))
	id := getString(got, "taskId")
	if getString(got, "resultType") != "task" || getString(got, "status") != "input_required" || id == "" || get(got, "createdAt") == nil || string(get(got, "ttlMs")) != "null" {
		t.Fatalf("%s", got)
	}
	state := []byte(f.task("tasks/get", id, "").result(t))
	if getString(state, "resultType") != "complete" || getString(state, "status") != "input_required" || get(get(state, "inputRequests"), approvalRequestID) == nil {
		t.Errorf("%s", state)
	}
	if got := f.task("tasks/update", id, `,"inputResponses":`+approve).result(t); got != `{"resultType":"complete"}` {
		t.Errorf("%s", got)
	}
	f.WaitFor("the end of the task", func() bool {
		state = []byte(f.task("tasks/get", id, "").result(t))
		return getString(state, "status") != "working"
	})
	if getString(state, "status") != "completed" || !strings.Contains(string(get(state, "result")), `"got":{"a":1.0}`) {
		t.Errorf("%s", state)
	}
	f.task("tasks/update", id, `,"inputResponses":`+approve).result(t)
	if n := f.Worker.Count() - before; n != 1 {
		t.Errorf("it ran %d times", n)
	}
	f.task("tasks/cancel", id, "").result(t) // cooperative: an ended task is unchanged
}

func TestATaskThatItsCallerConfirmsShowsItsArguments(t *testing.T) {
	f := openFabric(t, nil)
	id := getString([]byte(f.callAs(canBoth, "/mcp/risky", "echo", `{"a":1.0,"s":"gr\u00fc\u00dfe\u202e"}`, "").result(t)), "taskId")
	state := []byte(f.task("tasks/get", id, "").result(t))
	question := get(get(get(state, "inputRequests"), approvalRequestID), "params")
	if message := getString(question, "message"); !strings.HasSuffix(message, ` Arguments: {"a":1.0,"s":"grüße\u202e"}`) {
		t.Errorf("%s", state)
	}
}

func TestTaskIsPrivateAndNeedsTheTasksExtension(t *testing.T) {
	f := openFabric(t, nil)
	id := getString([]byte(f.callAs(canTasks, "/mcp/risky", "echo", `{}`, "").result(t)), "taskId")
	if e := f.task("tasks/get", "call_00000000000000000000000000", "").fault(t); e.Code != mcpwire.CodeInvalidParams {
		t.Errorf("%+v", e)
	}
	a := f.send(f.request("POST", "/mcp/risky", modernBody("tasks/get", fmt.Sprintf(`"taskId":%q`, id), `{}`, ""), modernHeaders("tasks/get", id)...))
	if e := a.fault(t); e.Code != mcpwire.CodeMissingCapability || a.status != 400 {
		t.Errorf("%d %s", a.status, a.body)
	}
	a = f.send(f.request("POST", "/mcp/risky", modernBody("tasks/get", fmt.Sprintf(`"taskId":%q`, id), canTasks, ""), modernHeaders("tasks/get", "other")...))
	if e := a.fault(t); e.Code != mcpwire.CodeHeaderMismatch {
		t.Errorf("%d %s", a.status, a.body)
	}
	if got := f.task("tasks/cancel", id, "").result(t); got != `{"resultType":"complete"}` {
		t.Error(got)
	}
	if state := f.task("tasks/get", id, "").result(t); getString([]byte(state), "status") != "cancelled" {
		t.Error(state)
	}
}

func TestTaskChangesAreNotifiedToListeners(t *testing.T) {
	f := openFabric(t, nil)
	id := getString([]byte(f.callAs(canBoth, "/mcp/risky", "echo", `{}`, "").result(t)), "taskId")
	body := modernBody("subscriptions/listen", fmt.Sprintf(`"notifications":{"taskIds":[%q]}`, id), canBoth, "")
	res, err := f.client.Do(f.request("POST", "/mcp/risky", body, modernHeaders("subscriptions/listen", "")...))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	next := events(t, res)
	if got := next(); !strings.Contains(got, id) {
		t.Error(got)
	}
	f.task("tasks/update", id, `,"inputResponses":`+approve).result(t)
	for {
		word := []byte(next())
		if getString(word, "method") != "notifications/tasks" {
			t.Fatalf("%s", word)
		}
		if params := get(word, "params"); getString(params, "status") == "completed" {
			if getString(params, "taskId") != id || get(params, "result") == nil || get(get(params, "_meta"), mcpwire.MetaSubscriptionID) == nil {
				t.Errorf("%s", params)
			}
			return
		}
	}
}

func TestHeldCallTextOmitsLongArguments(t *testing.T) {
	p := &calls.Held{Reasons: []string{"why"}}
	if got := words(p, []byte(strings.Repeat("x", maxShownBytes+1)), true); strings.Contains(got, "xxx") || !strings.Contains(got, "2001 bytes") {
		t.Error(got)
	}
}

func TestHeldCallTextEscapesDeceptiveCharacters(t *testing.T) {
	got := words(&calls.Held{}, []byte("{\"to\":\"\u0430nn\u200b\u202egpj\u009b\x7f\"}"), true)
	if want := `{"to":"\u0430nn\u200b\u202egpj\u009b\u007f"}`; !strings.HasSuffix(got, want) {
		t.Errorf("%q", got)
	}
}
