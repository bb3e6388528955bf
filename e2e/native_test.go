package e2e

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestBuiltInServersRunInTheWorker(t *testing.T) {
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	if err := os.Mkdir(data, 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(data, "a.txt"), "first line\n")
	write(t, filepath.Join(dir, "secret.txt"), "secret\n")
	file := filepath.Join(dir, "servers.json")
	write(t, file, `{"mcpServers": {"calc": {"builtin": "calculator"}, "files": {"builtin": "files", "roots": ["data:rw"]}, "todo": {"builtin": "todo"}}}`)
	up := startUp(t, setup{servers: file, env: []string{quickStop}})
	up.waitServers(t, 1, "calc", "files", "todo")

	if a := up.ask(t, http.MethodPost, toolPath("calc", "evaluate"), `{"expression":"2**64 + 1"}`); a.status != 200 || !strings.Contains(string(a.body), "18446744073709551617") {
		t.Errorf("calc: %d %s", a.status, a.body)
	}
	if a := up.ask(t, http.MethodPost, toolPath("files", "read"), `{"path":"a.txt"}`); a.status != 200 || !strings.Contains(string(a.body), "first line") {
		t.Errorf("read: %d %s", a.status, a.body)
	}
	for _, path := range []string{"../secret.txt", filepath.Join(dir, "secret.txt")} {
		body, err := json.Marshal(map[string]string{"path": path})
		if err != nil {
			t.Fatal(err)
		}
		if a := up.ask(t, http.MethodPost, toolPath("files", "read"), string(body)); strings.Contains(string(a.body), "secret\\n") || !strings.Contains(string(a.body), `"isError":true`) {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
	if a := up.ask(t, http.MethodGet, "/servers/calc", ""); !strings.Contains(string(a.body), `"transport":"builtin"`) {
		t.Errorf("the server is %s", a.body)
	}

	// A client of the MCP endpoint sees them like any other server.
	s := up.mcpClient(t, "/mcp", legacy, nil)
	tools, err := s.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, tool := range tools.Tools {
		names[tool.Name] = true
	}
	for _, want := range []string{"calc__evaluate", "files__read", "files__write", "todo__update"} {
		if !names[want] {
			t.Errorf("the MCP endpoint lacks %s", want)
		}
	}
}
