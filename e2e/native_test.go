package e2e

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// The unchanged program of docs/how-to/write-tools-in-go.md joins a fleet.
func TestTheExampleOfToolsInGoServesAndDrains(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(programs.root, "docs", "how-to", "write-tools-in-go.md"))
	if err != nil {
		t.Fatal(err)
	}
	shown := regexp.MustCompile("(?s)```go\n(package main\n.*?)```").FindSubmatch(page)
	if shown == nil {
		t.Fatal("the page shows no program")
	}
	nats := startNATS(t, t.TempDir())
	source := strings.Replace(string(shown[1]), `"nats://127.0.0.1:4222"`, `"`+nats.url+`"`, 1)
	if !strings.Contains(source, nats.url) {
		t.Fatal("the program of the page names no NATS server")
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "main.go"), source)
	outputOf(t, nil, "go", "-C", programs.root, "build", "-o", filepath.Join(dir, "example"), filepath.Join(dir, "main.go"))

	up := startFrontDoor(t, setup{nats: nats.url, env: []string{quickStop}})
	p := start(t, program{path: filepath.Join(dir, "example"), dir: dir})
	up.waitServers(t, 1, "prices")
	if a := up.ask(t, http.MethodPost, toolPath("prices", "quote"), `{"sku":"a","quantity":4}`); a.status != 200 || !strings.Contains(string(a.body), `"result":10`) {
		t.Errorf("quote: %d %s", a.status, a.body)
	}
	if a := up.ask(t, http.MethodGet, "/servers/prices/tools", ""); !strings.Contains(string(a.body), `"readOnlyHint":true`) || !strings.Contains(string(a.body), "article number") {
		t.Errorf("the tool is %s", a.body)
	}
	p.signal(t, syscall.SIGTERM)
	if code := p.wait(t, stopWithin); code != 0 {
		t.Errorf("the program exits with %d", code)
	}
}

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
