package mcp

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/kit/mcpwire"
	"github.com/callyard/callyard/pkg/schema"
)

// canAnswer are the capabilities of a client that supports tasks and input requests.
const canAnswer = `{"elicitation":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}`

// startTask calls a tool that is stored and returns the id of its task.
func (f *fabric) startTask(tool, arguments string) schema.CallID {
	f.t.Helper()
	task := []byte(f.callAs(canAnswer, "/mcp/demo", tool, arguments, "").result(f.t))
	if getString(task, "resultType") != "task" {
		f.t.Fatalf("no task: %s", task)
	}
	return schema.CallID(getString(task, "taskId"))
}

// update answers questions of a task.
func (f *fabric) update(id schema.CallID, responses string) answer {
	f.t.Helper()
	members := fmt.Sprintf(`"taskId":%q,"inputResponses":%s`, id, responses)
	return f.send(f.request("POST", "/mcp/demo", modernBody("tasks/update", members, canAnswer, ""), modernHeaders("tasks/update", string(id))...))
}

// keysOf returns the IDs of the questions of a task.
func keysOf(state []byte) (keys []string) {
	each(get(state, "inputRequests"), func(key string, _ []byte) { keys = append(keys, key) })
	return keys
}

const aName = `{"action":"accept","content":{"name":"Ada","big":9007199254740993}}`

func TestStoredCallWaitsForAnswersAndContinues(t *testing.T) {
	f := openJudged(t, judge(t, storeDemo), nil)
	before := f.Worker.Count()
	id := f.startTask("ask", `{"a":1.0}`)
	state := f.endOf("/mcp/demo", id)
	keys := keysOf(state)
	if getString(state, "status") != "input_required" || len(keys) != 1 || get(state, "requestState") != nil || get(state, "result") != nil {
		t.Fatalf("%s", state)
	}
	if got := getString(get(get(state, "inputRequests"), keys[0]), "method"); got != "elicitation/create" {
		t.Errorf("%s", state)
	}
	// An answer to an unknown question changes nothing.
	if got := f.update(id, `{"another":`+aName+`}`).result(t); got != `{"resultType":"complete"}` {
		t.Error(got)
	}
	if again := f.endOf("/mcp/demo", id); string(again) != string(state) {
		t.Errorf("%s, and then %s", state, again)
	}
	for range 2 { // the second is too late and starts nothing
		if got := f.update(id, fmt.Sprintf(`{%q:%s}`, keys[0], aName)).result(t); got != `{"resultType":"complete"}` {
			t.Error(got)
		}
	}
	state = f.endOf("/mcp/demo", id)
	extra := get(get(state, "result"), "extra")
	if getString(state, "status") != "completed" || string(get(get(extra, "inputResponses"), "q1")) != aName || getString(extra, "requestState") != "s-1" {
		t.Errorf("%s", state)
	}
	if !strings.Contains(string(extra), `"`+mcpwire.MetaClientCapabilities+`":{"elicitation":{}}`) {
		t.Errorf("the second round does not say what the client can be asked: %s", extra)
	}
	if last := f.Worker.Last(); string(last.Payload) != `{"a":1.0}` {
		t.Errorf("the second round has other arguments: %s", last.Payload)
	}
	if n := f.Worker.Count() - before; n != 2 {
		t.Errorf("%d runs", n)
	}
}

func TestPartialAnswersAreKeptAndNotAskedAgain(t *testing.T) {
	f := openJudged(t, judge(t, storeDemo), nil)
	id := f.startTask("ask-two", `{}`)
	state := f.endOf("/mcp/demo", id)
	keys := keysOf(state)
	if len(keys) != 2 {
		t.Fatalf("%s", state)
	}
	f.update(id, fmt.Sprintf(`{%q:{"n":1.0}}`, keys[0])).result(t)
	state = f.endOf("/mcp/demo", id)
	if left := keysOf(state); getString(state, "status") != "input_required" || len(left) != 1 || left[0] != keys[1] {
		t.Fatalf("%s", state)
	}
	f.update(id, fmt.Sprintf(`{%q:{"n":3},%q:{"n":2.0}}`, keys[0], keys[1])).result(t)
	// The server asks again with an ID that it has used before.
	state = f.endOf("/mcp/demo", id)
	second := keysOf(state)
	if getString(state, "status") != "input_required" || len(second) != 1 || second[0] == keys[0] || second[0] == keys[1] {
		t.Fatalf("%s", state)
	}
	if got := string(f.Worker.Last().Extra); !strings.Contains(got, `"inputResponses":{"a":{"n":1.0},"b":{"n":2.0}}`) || !strings.Contains(got, `"requestState":{"round":1}`) {
		t.Error(got)
	}
	f.update(id, fmt.Sprintf(`{%q:{"n":9}}`, keys[0])).result(t) // an ID of the previous round
	f.update(id, fmt.Sprintf(`{%q:{"n":4}}`, second[0])).result(t)
	state = f.endOf("/mcp/demo", id)
	if getString(state, "status") != "completed" || !strings.Contains(string(state), `"inputResponses":{"a":{"n":4}}`) {
		t.Errorf("%s", state)
	}
}

func TestATaskThatWaitsForAnAnswerCanBeCancelled(t *testing.T) {
	f := openJudged(t, judge(t, storeDemo), nil)
	id := f.startTask("ask", `{}`)
	key := keysOf(f.endOf("/mcp/demo", id))[0]
	before := f.Worker.Count()
	for range 2 {
		if got := f.taskAt("/mcp/demo", "tasks/cancel", id).result(t); got != `{"resultType":"complete"}` {
			t.Error(got)
		}
	}
	f.update(id, fmt.Sprintf(`{%q:%s}`, key, aName)).result(t)
	if state := f.endOf("/mcp/demo", id); getString(state, "status") != "failed" || get(state, "inputRequests") != nil || !strings.Contains(string(get(state, "error")), `"cancel_requested":true`) {
		t.Errorf("%s", state)
	}
	if n := f.Worker.Count() - before; n != 0 {
		t.Errorf("%d runs after it was cancelled", n)
	}
}

func TestAStoredCallOfAClientWithoutTasksAsksInTheRequest(t *testing.T) {
	f := openJudged(t, judge(t, storeDemo), nil)
	first := []byte(f.callAs(`{"elicitation":{}}`, "/mcp/demo", "ask", `{"a":1}`, "").result(t))
	keys, state := keysOf(first), getString(first, "requestState")
	if getString(first, "resultType") != "input_required" || len(keys) != 1 || !strings.HasPrefix(state, statePrefix) {
		t.Fatalf("%s", first)
	}
	more := fmt.Sprintf(`,"requestState":%q,"inputResponses":{%q:%s}`, state, keys[0], aName)
	for range 2 { // a repeated request gets the same answer
		got := f.callAs(`{"elicitation":{}}`, "/mcp/demo", "ask", `{"a":1}`, more).result(t)
		if !strings.Contains(got, `"q1":`+aName) {
			t.Error(got)
		}
	}
	// The state belongs to this call only.
	for _, other := range []answer{
		f.callAs(`{"elicitation":{}}`, "/mcp/demo", "ask", `{"a":2}`, more), f.callAs(`{"elicitation":{}}`, "/mcp/demo", "echo", `{"a":1}`, more),
		f.callAs(`{"elicitation":{}}`, "/mcp/demo", "ask", `{"a":1}`, fmt.Sprintf(`,"requestState":%q`, requestState{Call: "call_made_up", Round: 1})),
	} {
		if e := other.fault(t); e.Code != mcpwire.CodeInvalidParams {
			t.Errorf("%+v", e)
		}
	}
}

func TestQuestionsOfAStoredCallReachItsSession(t *testing.T) {
	f := openJudged(t, judge(t, storeDemo), nil)
	s := f.enter("/mcp/demo", `{"elicitation":{}}`)
	res, err := f.client.Do(s.request(`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"ask","arguments":{}}}`))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	next := events(t, res)
	asked := []byte(next())
	if getString(asked, "method") != "elicitation/create" {
		t.Fatalf("%s", asked)
	}
	if a := s.send(`{"jsonrpc":"2.0","id":` + string(get(asked, "id")) + `,"result":` + aName + `}`); a.status != 202 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	if got := next(); !strings.Contains(got, `"q1":`+aName) {
		t.Error(got)
	}
}

func TestListenerIsNotifiedWhenStoredCallAsksOrEnds(t *testing.T) {
	f := openJudged(t, judge(t, storeDemo), nil)
	id := f.startTask("ask", `{}`)
	body := modernBody("subscriptions/listen", fmt.Sprintf(`"notifications":{"taskIds":[%q,"call_made_up"]}`, id), canAnswer, "")
	res, err := f.client.Do(f.request("POST", "/mcp/demo", body, modernHeaders("subscriptions/listen", "")...))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	next := events(t, res)
	if got := next(); !strings.Contains(got, "acknowledged") {
		t.Fatal(got)
	}
	hears := func(status string) []byte {
		t.Helper()
		for {
			word := []byte(next())
			params := get(word, "params")
			if getString(word, "method") != "notifications/tasks" || schema.CallID(getString(params, "taskId")) != id {
				t.Fatalf("%s", word)
			}
			if getString(params, "status") == status {
				return params
			}
		}
	}
	key := keysOf(hears("input_required"))[0]
	f.update(id, fmt.Sprintf(`{%q:%s}`, key, aName)).result(t)
	if end := hears("completed"); !strings.Contains(string(end), aName) {
		t.Errorf("%s", end)
	}
}

// onlyTasks are tools whose definitions require that they run as tasks.
var onlyTasks = schema.Definitions{Tools: []json.RawMessage{
	raw(`{"name":"ask","inputSchema":{"type":"object"},"execution":{"taskSupport":"required"}}`),
	raw(`{"name":"echo","inputSchema":{"type":"object"},"execution":{"taskSupport":"required"}}`),
	raw(`{"name":"hang","inputSchema":{"type":"object"},"execution":{"taskSupport":"optional"}}`),
}}

func TestAToolThatOnlyRunsAsATaskIsRefusedToClientsWithoutTasks(t *testing.T) {
	f := openFabric(t, nil)
	f.define("demo", onlyTasks)
	f.WaitFor("the tools", func() bool { return f.endpoint.lists.view(place{mount: "demo"}).taskOnly[target{"demo", "echo"}] })
	before := f.Worker.Count()
	for _, path := range []string{"/mcp/demo", "/mcp"} {
		name := "echo"
		if path == "/mcp" {
			name = "demo__echo"
		}
		a := f.callAs(`{"elicitation":{}}`, path, name, `{}`, "")
		if e := a.fault(t); a.status != 400 || e.Code != mcpwire.CodeMissingCapability || string(e.Data) != `{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}` {
			t.Errorf("%s: %d %+v", path, a.status, e)
		}
	}
	if n := f.Worker.Count() - before; n != 0 {
		t.Errorf("%d runs", n)
	}
	// Sessions have no such tasks and run the tool like any other.
	s := f.enter("/mcp/demo", `{}`)
	if got := s.send(`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"echo","arguments":{"a":1}}}`).result(t); !strings.Contains(got, `"got":{"a":1}`) {
		t.Error(got)
	}
	id := f.startTask("echo", `{"a":1.0}`)
	if state := f.endOf("/mcp/demo", id); getString(state, "status") != "completed" || !strings.Contains(string(state), `"got":{"a":1.0}`) {
		t.Errorf("%s", state)
	}
}

func TestTaskOnlyToolAsksBeforeTheTaskIsCreated(t *testing.T) {
	f := openFabric(t, nil)
	f.define("demo", onlyTasks)
	f.WaitFor("the tools", func() bool { return f.endpoint.lists.view(place{mount: "demo"}).taskOnly[target{"demo", "ask"}] })
	first := []byte(f.callAs(canAnswer, "/mcp/demo", "ask", `{}`, "").result(t))
	keys := keysOf(first)
	if getString(first, "resultType") != "input_required" || len(keys) != 1 || get(first, "taskId") != nil {
		t.Fatalf("%s", first)
	}
	more := fmt.Sprintf(`,"requestState":%q,"inputResponses":{%q:%s}`, getString(first, "requestState"), keys[0], aName)
	second := []byte(f.callAs(canAnswer, "/mcp/demo", "ask", `{}`, more).result(t))
	if getString(second, "resultType") != "task" || get(second, "requestState") != nil || get(second, "inputRequests") != nil {
		t.Fatalf("%s", second)
	}
	if state := f.endOf("/mcp/demo", schema.CallID(getString(second, "taskId"))); getString(state, "status") != "completed" || !strings.Contains(string(state), aName) {
		t.Errorf("%s", state)
	}
}

func TestServerThatIsACallyardGetsItsOwnRequestState(t *testing.T) {
	f := openFabric(t, nil)
	theirs := requestState{Call: "call_theirs", Token: "t"}.String()
	arguments := fmt.Sprintf(`{"state":%q}`, theirs)
	state := getString([]byte(f.callAs(canForms, "/mcp/demo", "ask", arguments, "").result(t)), "requestState")
	got := f.callAs(canForms, "/mcp/demo", "ask", arguments, fmt.Sprintf(`,"inputResponses":{"q1":{"action":"accept"}},"requestState":%q`, state)).result(t)
	if extra := get([]byte(got), "extra"); getString(extra, "requestState") != theirs || get(get(extra, "inputResponses"), "q1") == nil {
		t.Error(got)
	}
}
