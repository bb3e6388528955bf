package config

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// adaptedFile writes a servers file with one server and, next to it, a secret.
func adaptedFile(t *testing.T, entry string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"mcp.json": `{"mcpServers": {"s": ` + entry + `}}`, "secret": "from a file\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "mcp.json")
}

func TestRestServicesAndToolEndpointsAreRead(t *testing.T) {
	path := adaptedFile(t, `{
		"openapi": "api.yaml", "base_url": "https://api.example.com/v1", "headers": {"X-A": "b"}, "auth": {"bearer": "${GH_TOKEN}"}, "riskLevel": 2,
		"credentials": {"key": {"value": "${GH_TOKEN}"}, "login": {"username": "ada", "password_file": "secret"}, "file": {"value_file": "secret"}},
		"include": [{"tags": ["pets"], "methods": ["get", "POST"]}], "exclude": [{"paths": ["/admin/**"]}, {"operations": ["delete*"]}]
	}`)
	servers, err := LoadServers(path, serversEnv)
	if err != nil {
		t.Fatal(err)
	}
	e := servers.Entries[0]
	want := &OpenAPI{
		Document: filepath.Join(filepath.Dir(path), "api.yaml"), BaseURL: "https://api.example.com/v1",
		Credentials: map[string]Credential{"key": {Value: "ghp-secret"}, "login": {Username: "ada", Password: "from a file"}, "file": {Value: "from a file"}},
		Include:     []Selector{{Tags: []string{"pets"}, Methods: []string{"get", "POST"}}}, Exclude: []Selector{{Paths: []string{"/admin/**"}}, {Operations: []string{"delete*"}}},
	}
	if diff := cmp.Diff(want, e.OpenAPI); diff != "" || e.Type != TypeOpenAPI || e.Risk != 2 || e.Headers["Authorization"] != "Bearer ghp-secret" {
		t.Errorf("the entry is %+v %v\n(-want +got):\n%s", bare(e), e.Headers, diff)
	}
	for _, form := range []string{"%v", "%+v", "%#v"} {
		if shown := fmt.Sprintf(form, e) + fmt.Sprintf(form, want.Credentials); strings.Contains(shown, "ghp-secret") || strings.Contains(shown, "from a file") {
			t.Errorf("a secret shows: %s", shown)
		}
	}
	if servers, err = LoadServers(adaptedFile(t, `{"tool_endpoint": {"url": "https://t.example/calls", "calls_per_request": 16, "tools": [{"type": "function", "function": {"name": "add", "parameters": {"maximum": 9007199254740993}}}]}}`), nil); err != nil {
		t.Fatal(err)
	}
	end := servers.Entries[0].Endpoint
	if end.Format != FormatOpenAI || end.CallsPerRequest != 16 || !strings.Contains(string(end.Tools), "9007199254740993") || !json.Valid(end.Tools) || servers.Entries[0].Type != TypeToolEndpoint {
		t.Errorf("the endpoint is %+v, %s", end, end.Tools)
	}
}

func TestServerEntryInARequestReadsNoFiles(t *testing.T) {
	for _, entry := range []string{
		`{"openapi": "/etc/passwd", "base_url": "https://h.example"}`,
		`{"openapi": "https://h.example/o.json", "credentials": {"k": {"value_file": "/etc/passwd"}}}`,
		`{"openapi": "https://h.example/o.json", "credentials": {"k": {"username": "u", "password_file": "/etc/passwd"}}}`,
	} {
		if _, err := ParseServer("s", []byte(entry)); err == nil || !strings.Contains(err.Error(), "cannot read files here") {
			t.Errorf("%s: %v", entry, err)
		}
	}
	if e, err := ParseServer("s", []byte(`{"openapi": "https://h.example/o.json"}`)); err != nil || e.OpenAPI == nil {
		t.Errorf("%v, %v", e, err)
	}
}
