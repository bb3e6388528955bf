package mcp

import (
	"fmt"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/batch"
	"github.com/callyard/callyard/internal/kit/mcpwire"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

// judge parses a policy.
func judge(t *testing.T, text string) *risk.Holder {
	t.Helper()
	p, err := risk.Parse([]byte(text), "policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return risk.NewHolder(p)
}

// storeDemo is a policy that makes every call of the server demo durable.
const storeDemo = "rules:\n  - name: stored\n    match: {server: demo}\n    level: 1\n    durable: true\n"

// taskAt sends a request about a task at a mount, as a client that supports tasks.
func (f *fabric) taskAt(mount, method string, id schema.CallID) answer {
	f.t.Helper()
	return f.send(f.request("POST", mount, modernBody(method, fmt.Sprintf(`"taskId":%q`, id), canTasks, ""), modernHeaders(method, string(id))...))
}

// endOf waits for the end of a task and returns its state.
func (f *fabric) endOf(mount string, id schema.CallID) []byte {
	f.t.Helper()
	var state []byte
	f.WaitFor("the end of the task", func() bool {
		state = []byte(f.taskAt(mount, "tasks/get", id).result(f.t))
		return getString(state, "status") != "working"
	})
	return state
}

func TestStoredCallIsATaskWithTheIDOfTheCall(t *testing.T) {
	f := openJudged(t, judge(t, storeDemo), nil)
	before := f.Worker.Count()
	a := f.callAs(canTasks, "/mcp/demo", "echo", `{"big": 9007199254740993}`, "")
	task := []byte(a.result(t))
	id := getString(task, "taskId")
	if _, _, ok := batch.ParseCallID(schema.CallID(id)); !ok || getString(task, "resultType") != "task" || a.header.Get("Callyard-Call-Id") != id {
		t.Fatalf("%s %s", a.header, task)
	}
	// The call is stored before its ID is sent, so it can be read at once.
	if state := []byte(f.taskAt("/mcp/demo", "tasks/get", schema.CallID(id)).result(t)); getString(state, "taskId") != id || get(state, "requestState") != nil {
		t.Errorf("%s", state)
	}
	state := f.endOf("/mcp/demo", schema.CallID(id))
	if getString(state, "status") != "completed" || !strings.Contains(string(get(state, "result")), `"got":{"big": 9007199254740993}`) {
		t.Errorf("%s", state)
	}
	if n := f.Worker.Count() - before; n != 1 {
		t.Errorf("it ran %d times", n)
	}
	// An outcome never changes.
	if got := f.taskAt("/mcp/demo", "tasks/cancel", schema.CallID(id)).result(t); got != `{"resultType":"complete"}` {
		t.Error(got)
	}
	if again := f.endOf("/mcp/demo", schema.CallID(id)); string(again) != string(state) {
		t.Errorf("%s, and then %s", state, again)
	}
}

func TestToolErrorCompletesATaskAndServerErrorFailsIt(t *testing.T) {
	f := openJudged(t, judge(t, storeDemo), nil)
	start := func(tool string) schema.CallID {
		return schema.CallID(getString([]byte(f.callAs(canTasks, "/mcp/demo", tool, `{}`, "").result(t)), "taskId"))
	}
	state := f.endOf("/mcp/demo", start("fail"))
	if getString(state, "status") != "completed" || string(get(get(state, "result"), "isError")) != "true" {
		t.Errorf("%s", state)
	}
	state = f.endOf("/mcp/demo", start("rpc"))
	if e := get(state, "error"); getString(state, "status") != "failed" || string(get(e, "code")) != "4242" || get(state, "result") != nil {
		t.Errorf("%s", state)
	}
}

func TestStoredCallCancelledWhileRunningReportsItMayHaveRun(t *testing.T) {
	f := openJudged(t, judge(t, storeDemo), nil)
	id := getString([]byte(f.callAs(canTasks, "/mcp/demo", "hang", `{}`, "").result(t)), "taskId")
	<-f.Worker.Asked
	if state := []byte(f.taskAt("/mcp/demo", "tasks/get", schema.CallID(id)).result(t)); getString(state, "status") != "working" {
		t.Errorf("%s", state)
	}
	for range 2 { // it may be repeated
		if got := f.taskAt("/mcp/demo", "tasks/cancel", schema.CallID(id)).result(t); got != `{"resultType":"complete"}` {
			t.Error(got)
		}
	}
	<-f.Worker.Canceled
	if state := f.endOf("/mcp/demo", schema.CallID(id)); getString(state, "status") != "failed" || get(state, "result") != nil ||
		!strings.Contains(string(get(state, "error")), `"kind":"outcome-unknown"`) || !strings.Contains(string(get(state, "error")), `"cancel_requested":true`) {
		t.Errorf("%s", state)
	}
}

func TestStoredCallOfClientWithoutTasksReturnsItsResult(t *testing.T) {
	f := openJudged(t, judge(t, storeDemo), nil)
	before := f.Worker.Count()
	s := f.enter("/mcp/demo", `{}`)
	for era, a := range map[string]answer{
		"modern": f.call("/mcp/demo", "echo", `{"a":1.0}`),
		"legacy": s.send(`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"echo","arguments":{"a":1.0}}}`),
	} {
		if got := a.result(t); !strings.Contains(got, `"got":{"a":1.0}`) || strings.Contains(got, "taskId") {
			t.Errorf("%s: %s", era, got)
		}
		if _, _, ok := batch.ParseCallID(schema.CallID(a.header.Get("Callyard-Call-Id"))); !ok {
			t.Errorf("%s: it was not stored: %s", era, a.header)
		}
	}
	if n := f.Worker.Count() - before; n != 2 {
		t.Errorf("%d runs", n)
	}
}

func TestUnknownTaskIDsAreRefused(t *testing.T) {
	f := openJudged(t, judge(t, storeDemo), nil)
	id := getString([]byte(f.callAs(canTasks, "/mcp/demo", "echo", `{}`, "").result(t)), "taskId")
	f.endOf("/mcp/demo", schema.CallID(id))
	for _, wrong := range []string{id[:len(id)-1], id + "0", "call_1", "~", strings.Repeat("x", 300)} {
		for _, method := range []string{"tasks/get", "tasks/cancel"} {
			if e := f.taskAt("/mcp/demo", method, schema.CallID(wrong)).fault(t); e.Code != mcpwire.CodeInvalidParams {
				t.Errorf("%s %q: %+v", method, wrong, e)
			}
		}
	}
}
