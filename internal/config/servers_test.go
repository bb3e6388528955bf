package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

var serversEnv = []string{"HOME=/home/someone", "GH_TOKEN=ghp-secret", "EMPTY="}

// bare is an entry without its methods, so that tests see what it holds.
type bare ServerEntry

func TestServersFilesOfOtherMCPClientsAreRead(t *testing.T) {
	for _, path := range files(t, "servers/*.json") {
		t.Run(filepath.Base(path), func(t *testing.T) {
			servers, err := LoadServers(path, serversEnv)
			if err != nil {
				t.Fatal(err)
			}
			entries := []any{}
			for _, e := range servers.Entries {
				type docker Docker
				entries = append(entries, struct {
					bare
					Docker *docker
				}{bare(e), (*docker)(e.Docker)})
			}
			out, err := json.MarshalIndent(map[string]any{"entries": entries, "notes": servers.Notes}, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			golden(t, strings.TrimSuffix(path, "json")+"golden", string(out)+"\n")
		})
	}
}

func TestEveryFaultOfAServersFileIsReportedAtOnceWithItsPlace(t *testing.T) {
	for _, path := range files(t, "serverfaults/*.json") {
		t.Run(filepath.Base(path), func(t *testing.T) {
			servers, err := LoadServers(path, serversEnv)
			var faults *Faults
			if !errors.As(err, &faults) {
				t.Fatalf("got %v and %T, want faults", servers, err)
			}
			if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("a secret is repeated in a fault:\n%v", err)
			}
			golden(t, strings.TrimSuffix(path, "json")+"golden", err.Error()+"\n")
		})
	}
}

func TestTheExamplesWeShipAreRead(t *testing.T) {
	for _, name := range []string{"mcp.json", "mcp_bridge.json", "rest.json"} {
		servers, err := LoadServers(filepath.Join("..", "..", "deploy", "examples", name), nil)
		if err != nil || len(servers.Entries) == 0 {
			t.Errorf("%s: %d servers, %v", name, len(servers.Entries), err)
		}
	}
}

func TestInvalidRiskLevelsAreRefused(t *testing.T) {
	for _, written := range []string{
		`"riskLevel": "3"`, `"riskLevel": 3.0`, `"riskLevel": 3e0`, `"riskLevel": null`, `"riskLevel": true`, `"riskLevel": [3]`,
		`"riskLevel": 0`, `"riskLevel": 4`, `"riskLevel": -1`, `"riskLevel": 99999999999999999999`, `"riskLevel": "${LEVEL}0"`, `"risklevel": 3`,
		`"risk_level": 3`, `"risk": 3`, `"RiskLevel": 3`, `"riskLevel ": 3`, `"riskLevel": 3, "riskLevel": 3`, `"docker": {"riskLevel": 3, "image": "x"}`,
	} {
		servers, err := LoadServers(write(t, "mcp.json", `{"mcpServers": {"a": {"command": "x", `+written+`}}}`), []string{"LEVEL=3"})
		if err == nil {
			t.Errorf("%s: accepted as %d", written, servers.Entries[0].Risk)
		}
	}
	for level := 1; level <= 3; level++ {
		servers, err := LoadServers(write(t, "mcp.json", fmt.Sprintf(`{"mcpServers": {"a": {"command": "x", "riskLevel": %d}}}`, level)), nil)
		if err != nil || servers.Entries[0].Risk != level {
			t.Errorf("level %d: got %v, %v", level, servers.Entries, err)
		}
	}
}

func TestMCPBridgeVariablesAddReplaceAndOverrideServers(t *testing.T) {
	file := write(t, "mcp_config.json", `{"mcpServers": {
		"my-files": {"command": "old", "args": ["old"], "env": {"OLD": "1"}, "riskLevel": 3, "docker": {"image": "old", "network": "none"},
			"labels": {"zone": "a"}, "trustAnnotations": true, "safeTools": ["*"], "sessions": 2},
		"partly": {"command": "keep", "args": ["keep"], "docker": {"image": "old", "network": "none"}},
		"off": {"command": "x", "disabled": true}
	}}`)
	servers, err := LoadServers(file, []string{
		"MCP_SERVER_MY_FILES_COMMAND=new", "MCP_SERVER_MY_FILES_ARGS=-y, pkg,",
		"MCP_SERVER_PARTLY_RISK_LEVEL=2", `MCP_SERVER_PARTLY_DOCKER_CONFIG={"image":"new"}`, "MCP_SERVER_PARTLY_ARGS=",
		"MCP_SERVER_OFF_COMMAND=y",
		"MCP_SERVER_BRAND_NEW_COMMAND=npx", `MCP_SERVER_BRAND_NEW_ARGS=["a,b","c"]`, `MCP_SERVER_BRAND_NEW_ENV={"TOKEN":"${HOME}","N":1}`,
		"MCP_SERVER_BRAND_NEW_RISK_LEVEL=1", "MCP_SERVER_URL=http://of-another-program", "HOME=/root",
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []bare{
		{ID: "my-files", Type: TypeStdio, Command: "new", Args: []string{"-y", "pkg", ""}, Risk: 3,
			Docker: &Docker{Image: "old", Network: "none"}, Labels: map[string]string{"zone": "a"}, Where: "MCP_SERVER_MY_FILES_COMMAND"},
		{ID: "partly", Type: TypeStdio, Command: "keep", Args: []string{"keep"}, Risk: 2, Docker: &Docker{Image: "new"}, Where: file + ":4:3"},
		{ID: "brand_new", Type: TypeStdio, Command: "npx", Args: []string{"a,b", "c"}, Env: map[string]string{"TOKEN": "${HOME}", "N": "1"},
			Risk: 1, Where: "MCP_SERVER_BRAND_NEW_COMMAND"},
	}
	var got []bare
	for _, e := range servers.Entries {
		got = append(got, bare(e))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if notes := strings.Join(servers.Notes, "\n"); !strings.Contains(notes, `replaces server "my-files" of the file`) || !strings.Contains(notes, `"off" is disabled`) {
		t.Errorf("notes:\n%s", notes)
	}
}

func TestFaultsNameTheServerVariable(t *testing.T) {
	file := write(t, "mcp.json", `{"mcpServers": {"a-b": {"command": "x", "riskLevel": 3}, "a_b": {"command": "x"}, "c": {"command": "x", "riskLevel": 3}}}`)
	_, err := LoadServers(file, []string{
		"MCP_SERVER_A_B_RISK_LEVEL=3", "MCP_SERVER_C_RISK_LEVL=3", "MCP_SERVER_C_RISK_LEVEL=high", "MCP_SERVER_C_ENV=hunter2",
		"MCP_SERVER_C_DOCKER_CONFIG=[]", "MCP_SERVER_D_ARGS=hunter2", "MCP_SERVER_E_COMMAND=x", "MCP_SERVER_E_RISK_LEVEL=0",
		`MCP_SERVER_E_DOCKER_CONFIG={"img":"x"}`, `MCP_SERVER_É/_COMMAND=x`,
	})
	if err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Fatalf("got %v", err)
	}
	golden(t, filepath.Join("testdata", "server_variables.golden"), err.Error()+"\n")
}

func TestAnAPIKeyIsSentAsABearerToken(t *testing.T) {
	for _, entry := range []string{
		`{"url": "https://h.example/mcp", "apiKey": "k"}`, `{"openapi": "https://h.example/openapi.json", "apiKey": "k"}`,
		`{"tool_endpoint": {"url": "https://h.example", "tools_url": "https://h.example/tools"}, "apiKey": "k", "headers": {"X-API-Key": "other"}}`,
	} {
		e, err := ParseServer("a", []byte(entry))
		if err != nil || e.Headers["Authorization"] != "Bearer k" || strings.Contains(e.String(), "Bearer") {
			t.Errorf("%s: %v, %v", entry, e, err)
		}
	}
}

func TestServerEntryInARequestCannotReadTheEnvironment(t *testing.T) {
	t.Setenv("GH_TOKEN", "hunter2")
	for _, entry := range []string{
		`{"command": "x", "args": ["${GH_TOKEN}"]}`, `{"command": "x", "env": {"A": "${env:GH_TOKEN}"}}`, `{"command": "x", "cwd": "${userHome}"}`,
		`{"url": "https://h.example", "bearerTokenEnv": "GH_TOKEN"}`, `{"command": "x", "riskLevl": 3}`, `{"command": "x"}, "b": {"command": "y"}`,
		`{"command": "x", "disabled": true}`, `{"command": "x"} //`, ``, `[]`,
	} {
		if e, err := ParseServer("a", []byte(entry)); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: got %v, %v", entry, e, err)
		}
	}
	e, err := ParseServer("a b", []byte(`{"command": "x", "riskLevel": 2}`))
	if err != nil || e.ID != "a b" || e.Command != "x" || e.Risk != 2 {
		t.Errorf("got %v, %v", e, err)
	}
}

func TestServersCanComeFromVariablesAlone(t *testing.T) {
	servers, err := LoadServers("", []string{"MCP_SERVER_FILESYSTEM_COMMAND=npx", "MCP_SERVER_FILESYSTEM_ARGS=-y,pkg,/tmp"})
	if err != nil || len(servers.Entries) != 1 || servers.Entries[0].ID != "filesystem" || len(servers.Entries[0].Args) != 3 {
		t.Errorf("got %v, %v", servers, err)
	}
	if servers, err := LoadServers("", nil); err != nil || len(servers.Entries) != 0 {
		t.Errorf("nothing: got %v, %v", servers, err)
	}
}

func TestWorkspaceFolderIsParentOfEditorFolder(t *testing.T) {
	for path, want := range map[string]string{
		"/w/.vscode/mcp.json": "/w", "/w/.cursor/mcp.json": "/w", "/w/mcp.json": "/w", ".vscode/mcp.json": ".", "mcp.json": ".",
	} {
		got, ok, err := clientForms(path, nil)("workspaceFolder")
		if got != want || !ok || err != nil {
			t.Errorf("%s: got %q, %v, %v", path, got, ok, err)
		}
	}
}

func TestTheServersFileAndPortAreFoundAsMCPBridgeDoes(t *testing.T) {
	env := []string{"MCP_CONFIG_PATH=/etc/mcp.json", "PORT=3000"}
	if got := FindServersFile("flag.json", env); got != "flag.json" {
		t.Errorf("flag: got %q", got)
	}
	if got := FindServersFile("", env); got != "/etc/mcp.json" {
		t.Errorf("variable: got %q", got)
	}
	if got := FindServersFile("", nil); got != "" {
		t.Errorf("nothing: got %q", got)
	}
	if port, ok, err := Port(env); port != "3000" || !ok || err != nil {
		t.Errorf("port: got %q, %v, %v", port, ok, err)
	}
	if _, ok, err := Port([]string{"PORT="}); ok || err != nil {
		t.Errorf("empty port: got %v, %v", ok, err)
	}
	for _, bad := range []string{"0", "65536", "http", "-1", "tcp://10.0.0.1:80"} {
		if _, ok, err := Port([]string{"PORT=" + bad}); ok || err == nil {
			t.Errorf("port %s: accepted", bad)
		}
	}
}

func TestAnEntryNeverShowsItsSecrets(t *testing.T) {
	entry := ServerEntry{
		ID: "a", Type: TypeHTTP, Command: "x", Args: []string{"hunter2"}, Env: map[string]string{"KEY": "hunter2"},
		URL: "https://u:hunter2@h.example/hunter2?k=hunter2", Headers: map[string]string{"Authorization": "hunter2"},
		Docker: &Docker{Image: "img", Env: map[string]string{"K": "hunter2"}}, Timeout: time.Minute,
	}
	var shown strings.Builder
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x"} {
		for _, value := range []any{entry, &entry, []ServerEntry{entry}, Servers{Entries: []ServerEntry{entry}}, *entry.Docker, entry.Docker, struct{ E any }{entry}} {
			fmt.Fprintf(&shown, verb+"\n", value)
		}
	}
	for _, handler := range []slog.Handler{slog.NewTextHandler(&shown, nil), slog.NewJSONHandler(&shown, nil)} {
		slog.New(handler).Info("m", "entry", entry, "pointer", &entry, "list", []ServerEntry{entry}, "docker", entry.Docker, "all", Servers{Entries: []ServerEntry{entry}})
	}
	if err := Dump(&shown, []ServerEntry{entry}); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(shown.String(), "hunter2") || strings.Contains(shown.String(), "68756e74657232") {
		t.Errorf("shown:\n%s", shown.String())
	}
	if !strings.Contains(shown.String(), "https://h.example/…") || !strings.Contains(shown.String(), "Authorization") {
		t.Errorf("what may be shown is not:\n%s", shown.String())
	}
}

// Programs write JSON in one line. With a count from its beginning for each value, this test takes
// hours.
func TestALargeServersFileOfOneLineIsRead(t *testing.T) {
	var text strings.Builder
	text.WriteString(`{"mcpServers":{`)
	for i := range 40_000 {
		fmt.Fprintf(&text, `"server-%d":{"command":"sh","args":["é",%q],"disabled":true},`, i, strings.Repeat("x", 60))
	}
	text.WriteString(`"ü":{"command":"sh"},"last":{"command":`)
	column := utf8.RuneCountInString(text.String()) + 1
	text.WriteString(`7}}}`)
	path := filepath.Join(t.TempDir(), "servers.json")
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := LoadServers(path, serversEnv)
	if err == nil || !strings.Contains(err.Error(), fmt.Sprintf(":1:%d: mcpServers.last.command", column)) {
		t.Errorf("the fault in column %d is reported as %v", column, err)
	}
}
