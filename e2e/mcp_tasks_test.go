package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// taskView is the part of a task that the tests read.
type taskView struct {
	Type   string                     `json:"resultType"`
	ID     string                     `json:"taskId"`
	Status string                     `json:"status"`
	Asks   map[string]json.RawMessage `json:"inputRequests"`
	Result json.RawMessage            `json:"result"`
}

// task sends a request of a client that supports tasks and elicitation.
func (d *door) task(t *testing.T, method, name, members string) (v taskView) {
	t.Helper()
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{%s,"_meta":{"io.modelcontextprotocol/protocolVersion":%q,`+
		`"io.modelcontextprotocol/clientCapabilities":{"elicitation":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}}}}`, method, members, modern)
	a := d.ask(t, "POST", "/mcp/tasks", body, "Accept: application/json", "MCP-Protocol-Version: "+modern, "Mcp-Method: "+method, "Mcp-Name: "+name)
	var got struct {
		Result json.RawMessage `json:"result"`
	}
	decode(t, a.body, &got)
	if got.Result == nil {
		t.Fatalf("%s: %d %s", method, a.status, a.body)
	}
	decode(t, got.Result, &v)
	return v
}

// settledTask waits until a task is no longer working.
func (d *door) settledTask(t *testing.T, id string) taskView {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; {
		v := d.task(t, "tasks/get", id, fmt.Sprintf(`"taskId":%q`, id))
		if v.Status != "working" {
			return v
		}
		if time.Now().After(end) {
			t.Fatalf("it still works: %+v", v)
		}
		d.ask(t, "GET", "/calls/"+id+"?wait=1", "")
	}
}

func TestTaskWaitingForInputSurvivesKillOfFrontDoor(t *testing.T) {
	policy := filepath.Join(t.TempDir(), "policy.yaml")
	write(t, policy, holdTasks)
	s := setup{servers: serversFile(t, map[string]entry{"tasks": tasksServer()}), data: t.TempDir(), flags: []string{"--policy", policy}, env: []string{quickStop}}
	up := startUp(t, s)
	up.waitServers(t, 1, "tasks")
	id := up.task(t, "tools/call", "multi_input", `"name":"multi_input","arguments":{}`).ID
	v := up.settledTask(t, id)
	asked := slices.Sorted(maps.Keys(v.Asks))
	if v.Status != "input_required" || len(asked) != 2 {
		t.Fatalf("%+v", v)
	}
	answer := func(key, name string) {
		t.Helper()
		up.task(t, "tasks/update", id, fmt.Sprintf(`"taskId":%q,"inputResponses":{%q:{"action":"accept","content":{"name":%q}}}`, id, key, name))
	}
	answer(asked[0], "Ada")
	up.kill9(t)
	up = startUp(t, s)
	up.waitServers(t, 1, "tasks")
	v = up.settledTask(t, id)
	if left := slices.Sorted(maps.Keys(v.Asks)); v.Status != "input_required" || len(left) != 1 || left[0] != asked[1] {
		t.Fatalf("after the restart: %+v", v)
	}
	answer(asked[1], "Lovelace")
	if v = up.settledTask(t, id); v.Status != "completed" || !strings.Contains(string(v.Result), "Ada Lovelace") {
		t.Errorf("%+v", v)
	}
}
