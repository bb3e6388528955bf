package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// publishedAgent makes the requests of MCP Bridge's llm_test.py and reads the same members of the
// responses. Each fault is a response with which the script would fail.
type publishedAgent struct {
	t    *testing.T
	base string
}

// do is requests.get, or requests.post with json, followed by raise_for_status.
func (a *publishedAgent) do(path string, body any) (answer map[string]any, status int) {
	a.t.Helper()
	method, text := http.MethodGet, []byte(nil)
	if body != nil {
		method = http.MethodPost
		var err error
		if text, err = json.Marshal(body); err != nil {
			a.t.Fatal(err)
		}
	}
	request, err := http.NewRequestWithContext(a.t.Context(), method, a.base+path, bytes.NewReader(text))
	if err != nil {
		a.t.Fatal(err)
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	request.Header.Set("Accept", "*/*")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		a.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		a.t.Fatalf("%s: %v", path, err)
	}
	return answer, response.StatusCode
}

// run is one iteration of its loop: it runs the call in an answer of the model, confirms it, and
// returns the text for the model.
func (a *publishedAgent) run(said string, confirm bool) string {
	a.t.Helper()
	var answer struct {
		Call struct {
			Server     string         `json:"server_id"`
			Tool       string         `json:"tool_name"`
			Parameters map[string]any `json:"parameters"`
		} `json:"tool_call"`
	}
	if err := json.Unmarshal([]byte(said), &answer); err != nil {
		a.t.Fatal(err)
	}
	result, status := a.do("/servers/"+answer.Call.Server+"/tools/"+answer.Call.Tool, answer.Call.Parameters)
	if status < 400 && result["requires_confirmation"] == true {
		for _, member := range []string{"method", "server_id", "tool_name", "risk_level", "risk_description", "expires_at", "confirmation_id"} {
			if result[member] == nil {
				a.t.Errorf("the confirmation has no %s: %v", member, result)
			}
		}
		result, status = a.do(fmt.Sprintf("/confirmations/%v", result["confirmation_id"]), map[string]bool{"confirm": confirm})
		if !confirm {
			return "The operation was cancelled by the user" // whatever the response is
		}
	}
	if status >= 400 {
		return fmt.Sprintf("The tool execution failed with error: Error: %v", result["error"])
	}
	text, err := json.Marshal(result)
	if err != nil {
		a.t.Fatal(err)
	}
	return fmt.Sprintf("The tool %s was executed successfully. Result: %s", answer.Call.Tool, text)
}

func TestThePublishedAgentsScriptWorks(t *testing.T) {
	y := openTestFabric(t)
	a := &publishedAgent{t, y.url}
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	if health, status := a.do("/health", nil); status != http.StatusOK || health["serverCount"] != float64(1) {
		t.Errorf("/health: %d %v", status, health)
	}
	servers, _ := a.do("/servers", nil)
	list, _ := servers["servers"].([]any)
	if len(list) != 1 || list[0].(map[string]any)["id"] != "notes" {
		t.Fatalf("/servers: %v", servers)
	}
	tools, _ := a.do("/servers/notes/tools", nil)
	named, _ := tools["tools"].([]any)
	if len(named) != 2 {
		t.Fatalf("/servers/notes/tools: %v", tools)
	}
	for _, one := range named {
		tool := one.(map[string]any)
		schema, _ := tool["inputSchema"].(map[string]any)
		if properties, _ := schema["properties"].(map[string]any); tool["name"] == "" || tool["description"] == "" || properties["text"] == nil {
			t.Errorf("the tool %v", tool)
		}
	}
	call := func(tool, text string) string {
		return `{"tool_call":{"server_id":"notes","tool_name":"` + tool + `","parameters":{"text":"` + text + `"}},"response":"I do it."}`
	}
	for _, c := range []struct {
		said    string
		confirm bool
		told    string // substring of the text for the model
	}{
		{call("read", "a"), false, "executed successfully. Result: {"},
		{call("read", "a"), false, "noted a"},
		{call("delete", "b"), true, "noted b"},
		{call("delete", "c"), false, "cancelled by the user"},
		{call("read", "fault"), false, "the disk is full"},
		{call("missing", "a"), false, "failed with error: Error: "},
	} {
		if told := a.run(c.said, c.confirm); !strings.Contains(told, c.told) || strings.Contains(told, "<nil>") {
			t.Errorf("%s: the model is told %q", c.said, told)
		}
	}
	if ran := strings.Join(y.ran, ","); ran != "read a,read a,delete b,read fault" {
		t.Errorf("the tools ran %s", ran)
	}
}
