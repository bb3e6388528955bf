package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func TestTheRestAPIOfOneFabricIsToolsOfAnother(t *testing.T) {
	below := startUp(t, setup{env: []string{quickStop}})
	below.waitServers(t, 1, "demo")
	servers := filepath.Join(t.TempDir(), "mcp.json")
	write(t, servers, fmt.Sprintf(`{"mcpServers": {"fabric": {
		"openapi": "%s/openapi.json", "trustAnnotations": true,
		"exclude": [{"paths": ["/servers"], "methods": ["POST"]}, {"methods": ["DELETE"]}, {"paths": ["/livez", "/readyz", "/metrics", "/**events"]}]
	}}}`, below.url))
	above := startUp(t, setup{servers: servers, env: []string{quickStop}})
	above.waitServers(t, 1, "fabric")

	var item struct {
		Transport string `json:"transport"`
	}
	if above.read(t, "/servers/fabric", &item); item.Transport != "openapi" {
		t.Errorf("the server is reached by %q", item.Transport)
	}
	var listed struct {
		Tools []struct {
			Name        string
			Annotations struct{ ReadOnlyHint bool }
			Meta        struct {
				HTTP struct{ Method, Path string } `json:"callyard/http"`
			} `json:"_meta"`
		}
	}
	above.read(t, "/servers/fabric/tools", &listed)
	names := map[string]string{} // names by purpose
	for _, tool := range listed.Tools {
		from := tool.Meta.HTTP.Method + " " + tool.Meta.HTTP.Path
		names[from] = tool.Name
		if tool.Annotations.ReadOnlyHint != strings.HasPrefix(from, "GET ") {
			t.Errorf("%s (%s) says readOnlyHint %v", tool.Name, from, tool.Annotations.ReadOnlyHint)
		}
	}
	callTool, health, getServer := names["POST /servers/{id}/tools/{tool}"], names["GET /health"], names["GET /servers/{id}"]
	if callTool == "" || health == "" || getServer == "" || len(names) < 15 {
		t.Errorf("the tools are %v", names)
	}
	if names["POST /servers"] != "" || names["GET /events"] != "" {
		t.Errorf("a tool that was excluded is there: %v", names)
	}

	// A call through both. Large numbers pass through unchanged.
	var result struct {
		Structured struct {
			Content []struct{ Text string } `json:"content"`
		} `json:"structuredContent"`
	}
	decode(t, above.call(t, "fabric", callTool, `{"id":"demo","tool":"echo","body":{"message":"9007199254740993"}}`), &result)
	if len(result.Structured.Content) == 0 || result.Structured.Content[0].Text != "Echo: 9007199254740993" {
		t.Errorf("the call answers %+v", result)
	}
	var alive struct {
		Structured struct {
			Status string `json:"status"`
		} `json:"structuredContent"`
	}
	decode(t, above.call(t, "fabric", health, `{}`), &alive)
	if alive.Structured.Status != "ok" {
		t.Errorf("health answers %+v", alive)
	}
	// Arguments are validated with the schema of the document.
	above.ask(t, "POST", toolPath("fabric", callTool), `{"id":"demo"}`).problem(t, http.StatusUnprocessableEntity, "invalid-arguments")
	// An error response of the service is a tool error.
	if got := string(above.call(t, "fabric", getServer, `{"id":"none"}`)); !strings.Contains(got, `"isError":true`) || !strings.Contains(got, "HTTP 404") {
		t.Errorf("a server that is not there: %s", got)
	}
	if got := string(above.call(t, "fabric", getServer, `{"id":".."}`)); !strings.Contains(got, "Nothing was sent") {
		t.Errorf("a way out: %s", got)
	}

	out, err := exec.Command(filepath.Join(bin(t), "callyard"), "config", "check", "--servers", servers).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "tool "+callTool+": POST /servers/{id}/tools/{tool}") {
		t.Errorf("config check: %v: %s", err, out)
	}
}

func TestAToolEndpointIsAServer(t *testing.T) {
	var mu sync.Mutex
	var seen []string
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.Method == http.MethodGet {
			fmt.Fprint(w, `{"tools":[{"type":"function","function":{"name":"add","description":"Adds.","parameters":{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}}}]}`)
			return
		}
		mu.Lock()
		seen = append(seen, string(body))
		mu.Unlock()
		var in struct {
			Calls []struct{ ID string } `json:"tool_calls"`
		}
		if json.Unmarshal(body, &in) != nil || len(in.Calls) != 1 {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		fmt.Fprintf(w, `{"messages":[{"role":"tool","tool_call_id":%q,"content":"{\"sum\": 9007199254740993}"}]}`, in.Calls[0].ID)
	}))
	t.Cleanup(endpoint.Close)
	servers := filepath.Join(t.TempDir(), "mcp.json")
	write(t, servers, fmt.Sprintf(`{"mcpServers": {"calc": {"tool_endpoint": {"url": "%[1]s/calls", "tools_url": "%[1]s/tools"}, "headers": {"X-Key": "k"}}}}`, endpoint.URL))
	up := startUp(t, setup{servers: servers, env: []string{quickStop}})
	up.waitServers(t, 1, "calc")
	got := string(up.call(t, "calc", "add", `{ "a":9007199254740993 }`))
	if !strings.Contains(got, `"structuredContent":{"sum": 9007199254740993}`) {
		t.Errorf("the result is %s", got)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(seen) != 1 || !strings.Contains(seen[0], `"arguments":"{ \"a\":9007199254740993 }"`) {
		t.Errorf("the endpoint got %q", seen)
	}
}

func TestAllFaultsOfRESTServicesInAFileAreReported(t *testing.T) {
	servers := filepath.Join(t.TempDir(), "mcp.json")
	write(t, servers, "{\"mcpServers\": {\n\"a\": {\"openapi\": \"o.json\"},\n\"b\": {\"openapi\": \"https://h.example/o\", \"exclude\": [{\"tag\": [\"x\"]}]}\n}}")
	out, err := exec.Command(filepath.Join(bin(t), "callyard"), "config", "check", "--servers", servers).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "mcp.json:2:") || !strings.Contains(string(out), "mcp.json:3:") {
		t.Errorf("%v: %s", err, out)
	}
	// An unreachable document is reported too, without its query.
	gone := httptest.NewServer(http.NotFoundHandler())
	address := gone.URL
	gone.Close()
	write(t, servers, `{"mcpServers": {"a": {"openapi": "`+address+`/o.json?key=hunter2"}}}`)
	out, err = exec.Command(filepath.Join(bin(t), "callyard"), "config", "check", "--servers", servers).CombinedOutput()
	if u, _ := url.Parse(address); err == nil || !strings.Contains(string(out), "could not be fetched") || strings.Contains(string(out), "hunter2") || u.Port() == "" {
		t.Errorf("%v: %s", err, out)
	}
}
