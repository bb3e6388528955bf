package mcp

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/approval"
	"github.com/callyard/callyard/internal/calls"
	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/pkg/risk"
)

// strictDesk returns a desk with a policy by which approvers decide on every call.
func (f *fabric) strictDesk() *approval.Desk {
	return approval.New(approval.Options{Ledger: f.Calls.Ledger, Log: f.Log, Assess: func(context.Context, *ledger.Approval, []byte) (risk.Assessment, error) {
		return risk.Assessment{Level: risk.Medium, Version: "stricter", Reasons: []string{"ask"}, Approval: &risk.Approval{By: risk.ByGroups, Groups: []string{"ops"}, Needed: 1, Expires: time.Hour}}, nil
	}})
}

// reloaded replaces the policy with one by which approvers decide on held calls.
func (f *fabric) reloaded() {
	f.t.Helper()
	if err := f.strictDesk().Renew(f.t.Context()); err != nil {
		f.t.Fatal(err)
	}
}

// strict returns a front door that serves the same calls and already has the stricter policy.
func (f *fabric) strict() *fabric {
	f.t.Helper()
	o := f.endpoint.o
	of := f.Calls
	of.Desk = f.strictDesk()
	o.Calls = calls.New(of)
	return f.serving(o)
}

const (
	canURLTasks = `{"elicitation":{"form":{},"url":{}},"extensions":{"io.modelcontextprotocol/tasks":{}}}`
	atPage      = `"url":"http://approver.test/a/`
)

// refused fails if the call ran. got must contain the URL of the approver's page and no token.
func (f *fabric) refused(what string, got []byte, before int) {
	f.t.Helper()
	about := get(get(got, "_meta"), "callyard/confirmation")
	if page := getString(about, "approval_url"); !strings.HasPrefix(page, "http://approver.test/a/") || get(about, "confirmation_id") != nil {
		f.t.Errorf("%s: %s", what, got)
	}
	if f.Worker.Count() != before {
		f.t.Errorf("%s: it ran", what)
	}
}

func TestATaskAsksItsCallerOnlyWhileTheCallerMayDecide(t *testing.T) {
	f := openFabric(t, nil)
	before := f.Worker.Count()
	get1 := func(capabilities, id string) []byte {
		a := f.send(f.request("POST", "/mcp/risky", modernBody("tasks/get", fmt.Sprintf(`"taskId":%q`, id), capabilities, ""), modernHeaders("tasks/get", id)...))
		return []byte(a.result(t))
	}
	id := getString([]byte(f.callAs(canBoth, "/mcp/risky", "echo", `{"a":1}`, "").result(t)), "taskId")
	f.reloaded()
	state := get1(canBoth, id)
	if getString(state, "status") != "working" || get(state, "inputRequests") != nil || !strings.Contains(getString(state, "statusMessage"), "http://approver.test/a/") {
		t.Errorf("%s", state)
	}
	// A client that can open pages is asked to open the approver's page.
	if state = get1(canURLTasks, id); getString(state, "status") != "input_required" || !strings.Contains(string(state), atPage) || strings.Contains(string(state), "requestedSchema") {
		t.Errorf("%s", state)
	}
	// An answer to the earlier question changes nothing, but one that withdraws the call is accepted.
	f.task("tasks/update", id, `,"inputResponses":`+approve).result(t)
	if state = get1(canBoth, id); getString(state, "status") != "working" || f.Worker.Count() != before {
		t.Errorf("%s", state)
	}
	f.task("tasks/update", id, `,"inputResponses":{"approval":{"action":"accept","content":{"confirm":false}}}`).result(t)
	if state = get1(canBoth, id); getString(state, "status") != "cancelled" {
		t.Errorf("%s", state)
	}
}

func TestAnApprovalOfTheCallerDoesNotCountWhenThePolicyHasChanged(t *testing.T) {
	f := openFabric(t, nil)
	before := f.Worker.Count()
	for name, change := range map[string]func() *fabric{
		"noticed before the answer": func() *fabric { f.reloaded(); return f },
		"noticed by the answer":     f.strict,
	} {
		held := func(capabilities string) (again func(f *fabric, state string) []byte, state string) {
			got := []byte(f.callAs(capabilities, "/mcp/risky", "echo", `{"a":1}`, "").result(t))
			return func(f *fabric, state string) []byte {
				return []byte(f.callAs(capabilities, "/mcp/risky", "echo", `{"a":1}`, fmt.Sprintf(`,"inputResponses":%s,"requestState":%q`, approve, state)).result(t))
			}, getString(got, "requestState")
		}
		forms, formState := held(canFormsOnly)
		pages, pageState := held(canURLs)
		id := getString([]byte(f.callAs(canBoth, "/mcp/risky", "echo", `{"a":1}`, "").result(t)), "taskId")
		g := change()
		f.refused(name, forms(g, formState), before)
		// The question is sent again, in the form that is now required.
		if got := pages(g, pageState); !strings.Contains(string(got), atPage) || getString(got, "requestState") == "" || f.Worker.Count() != before {
			t.Errorf("%s: %s", name, got)
		}
		g.task("tasks/update", id, `,"inputResponses":`+approve).result(t)
		if state := g.task("tasks/get", id, "").result(t); getString([]byte(state), "status") != "working" {
			t.Errorf("%s: %s", name, state)
		}
	}
}

func TestSessionConfirmationIsRefusedIfPolicyNowNeedsApprover(t *testing.T) {
	f := openFabric(t, nil)
	before := f.Worker.Count()
	s := f.enter("/mcp/risky", canForms)
	next, question := s.asked(t, `"name":"echo"`)
	f.reloaded()
	s.send(`{"jsonrpc":"2.0","id":` + string(get(question, "id")) + `,"result":{"action":"accept","content":{"confirm":true}}}`)
	f.refused("session", get([]byte(next()), "result"), before)
}
