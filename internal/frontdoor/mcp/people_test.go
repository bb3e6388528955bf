package mcp

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/approval"
	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/pkg/schema"
)

// askPeople is a policy by which approvers decide on calls of the server risky.
const askPeople = "rules:\n  - name: ask\n    match: {server: risky}\n    approval: {by: groups, groups: [ops]}\n"

const (
	canURLs      = `{"elicitation":{"form":{},"url":{}}}`
	canFormsOnly = `{"elicitation":{"form":{}}}`
	looked       = `{"approval":{"action":"accept"}}`
)

// decide approves or denies a call, as a member of the right group who was shown the call.
func (f *fabric) decide(id schema.ApprovalID, kind ledger.DecisionKind) error {
	f.t.Helper()
	shown, _, err := f.Calls.Ledger.Get(f.t.Context(), schema.AllTenants(), id)
	if err != nil {
		f.t.Fatal(err)
	}
	who := schema.Principal{Name: "olga", Groups: []string{"ops"}}
	_, err = f.Calls.Desk.Decide(f.t.Context(), id, approval.Answer{Kind: kind, Digest: shown.Binding.ArgumentsDigest}, who, "web")
	return err
}

// agree approves a call and does the same as the runner: it claims the call and runs it.
func (f *fabric) agree(id schema.ApprovalID) {
	f.t.Helper()
	if err := f.decide(id, ledger.Approve); err != nil {
		f.t.Fatal(err)
	}
	running, err := f.Calls.Desk.Claim(f.t.Context(), schema.DefaultTenant, id, f.Calls.FrontDoor)
	if err == nil {
		_, err = f.Calls.Release(f.t.Context(), running, nil)
	}
	if err != nil {
		f.t.Fatal(err)
	}
}

// heldByPeople calls a tool that needs an approver. It returns the approval and the requestState.
func (f *fabric) heldByPeople(arguments string) (id schema.ApprovalID, state string) {
	f.t.Helper()
	got := []byte(f.callAs(canURLs, "/mcp/risky", "echo", arguments, "").result(f.t))
	params := get(get(get(got, "inputRequests"), approvalRequestID), "params")
	page, state := getString(params, "url"), getString(got, "requestState")
	after, ok := strings.CutPrefix(page, "http://approver.test/a/")
	id = schema.ApprovalID(after)
	if getString(params, "mode") != "url" || !ok || state == "" || get(params, "requestedSchema") != nil {
		f.t.Fatalf("%s", got)
	}
	return id, state
}

// comeBack sends the call again with the answer of its user. The channel receives the answer when
// the call has ended.
func (f *fabric) comeBack(arguments, state, responses string) <-chan answer {
	f.t.Helper()
	members := fmt.Sprintf(`"name":"echo","arguments":%s,"inputResponses":%s,"requestState":%q`, arguments, responses, state)
	r := f.request("POST", "/mcp/risky", modernBody("tools/call", members, canURLs, ""), modernHeaders("tools/call", "echo")...)
	done := make(chan answer, 1)
	go func() { done <- f.send(r) }()
	return done
}

func TestCallApprovedOnThePageContinues(t *testing.T) {
	f := openJudged(t, judge(t, askPeople), nil)
	before := f.Worker.Count()
	id, state := f.heldByPeople(`{"a":1.0}`)
	waiting := f.comeBack(`{"a":1.0}`, state, looked)
	if f.Worker.Count() != before {
		t.Fatal("it ran before anybody approved it")
	}
	f.agree(id)
	if got := (<-waiting).result(t); !strings.Contains(got, `"got":{"a":1.0}`) {
		t.Error(got)
	}
	if n := f.Worker.Count() - before; n != 1 {
		t.Errorf("it ran %d times", n)
	}
	// A client that retries later gets the same outcome, and nothing runs again.
	if got := (<-f.comeBack(`{"a":1.0}`, state, looked)).result(t); !strings.Contains(got, `"got":{"a":1.0}`) || f.Worker.Count() != before+1 {
		t.Errorf("%s, %d runs", got, f.Worker.Count()-before)
	}
}

func TestDeniedCallReturnsAnErrorAndNeverRuns(t *testing.T) {
	f := openJudged(t, judge(t, askPeople), nil)
	before := f.Worker.Count()
	id, state := f.heldByPeople(`{}`)
	waiting := f.comeBack(`{}`, state, looked)
	if err := f.decide(id, ledger.Deny); err != nil {
		t.Fatal(err)
	}
	if got := (<-waiting).result(t); !strings.Contains(got, `"isError":true`) || strings.Contains(got, `"got"`) || f.Worker.Count() != before {
		t.Errorf("%s, %d runs", got, f.Worker.Count()-before)
	}
}

func TestCallWithdrawnByItsUserCannotBeApproved(t *testing.T) {
	f := openJudged(t, judge(t, askPeople), nil)
	before := f.Worker.Count()
	id, state := f.heldByPeople(`{}`)
	if got := (<-f.comeBack(`{}`, state, `{"approval":{"action":"decline"}}`)).result(t); !strings.Contains(got, "withdrawn") {
		t.Error(got)
	}
	if err := f.decide(id, ledger.Approve); schema.KindOf(err) != schema.KindConflict || f.Worker.Count() != before {
		t.Errorf("%v, %d runs", err, f.Worker.Count()-before)
	}
}

func TestACallerCannotConfirmACallThatNeedsAnApprover(t *testing.T) {
	f := openJudged(t, judge(t, askPeople), nil)
	before := f.Worker.Count()
	id, state := f.heldByPeople(`{}`)
	// A cancelled question and a missing answer are no decisions.
	for responses, want := range map[string]string{`{}`: `"resultType":"input_required"`, `{"approval":{"action":"cancel"}}`: `"requires_confirmation":true`} {
		if got := (<-f.comeBack(`{}`, state, responses)).result(t); !strings.Contains(got, want) {
			t.Errorf("%s: %s", responses, got)
		}
	}
	for name, capabilities := range map[string]string{"forms only": canFormsOnly, "nothing": `{}`} {
		got := []byte(f.callAs(capabilities, "/mcp/risky", "echo", `{}`, "").result(t))
		about := get(get(got, "_meta"), "callyard/confirmation")
		if string(get(got, "isError")) != "true" || get(about, "confirmation_id") != nil || !strings.HasPrefix(getString(about, "approval_url"), "http://approver.test/a/") {
			t.Errorf("%s: %s", name, got)
		}
	}
	// The user was sent to a page, so an approval in a form only means that the page was opened.
	waiting := f.comeBack(`{}`, state, approve)
	if err := f.decide(id, ledger.Deny); err != nil {
		t.Fatal(err)
	}
	if got := (<-waiting).result(t); !strings.Contains(got, `"isError":true`) || f.Worker.Count() != before {
		t.Errorf("%s, %d runs", got, f.Worker.Count()-before)
	}
}

func TestLegacyClientGetsThePageURLAndWaits(t *testing.T) {
	f := openJudged(t, judge(t, askPeople), nil)
	s := f.enter("/mcp/risky", canURLs)
	next, question := s.asked(t, `"name":"echo","arguments":{"a":1.0}`)
	params := get(question, "params")
	id, _ := strings.CutPrefix(getString(params, "url"), "http://approver.test/a/")
	if getString(question, "method") != "elicitation/create" || getString(params, "mode") != "url" || getString(params, "elicitationId") != id || id == "" {
		t.Fatalf("%s", question)
	}
	if a := s.send(`{"jsonrpc":"2.0","id":` + string(get(question, "id")) + `,"result":{"action":"accept"}}`); a.status != http.StatusAccepted {
		t.Errorf("%d %s", a.status, a.body)
	}
	f.agree(schema.ApprovalID(id))
	if got := next(); !strings.Contains(got, `"got":{"a":1.0}`) {
		t.Error(got)
	}
}

func TestATaskThatPeopleApproveEndsWithItsResult(t *testing.T) {
	f := openJudged(t, judge(t, askPeople), nil)
	task := []byte(f.callAs(canTasks, "/mcp/risky", "echo", `{"a":1.0}`, "").result(t))
	id := getString(task, "taskId")
	if getString(task, "status") != "working" || !strings.Contains(getString(task, "statusMessage"), "http://approver.test/a/") || strings.Contains(id, taskGlue) {
		t.Fatalf("%s", task)
	}
	_, page, _ := strings.Cut(getString(task, "statusMessage"), "http://approver.test/a/")
	f.agree(schema.ApprovalID(page))
	if state := f.endOf("/mcp/risky", schema.CallID(id)); getString(state, "status") != "completed" || !strings.Contains(string(get(state, "result")), `"got":{"a":1.0}`) {
		t.Errorf("%s", state)
	}
}
