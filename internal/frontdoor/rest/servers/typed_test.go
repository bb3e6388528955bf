package servers

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/format"
	"github.com/callyard/callyard/pkg/schema"
)

// repository is the root of the repository.
var repository = filepath.Join("..", "..", "..", "..")

// commonOf reads the document of the API as it is shipped.
func commonOf(t testing.TB) *typedCommon {
	t.Helper()
	whole, err := os.ReadFile(filepath.Join(repository, "clients", "openapi.json"))
	if err != nil {
		t.Fatal(err)
	}
	common, err := newTypedCommon(whole)
	if err != nil {
		t.Fatal(err)
	}
	return common
}

// toolOf makes a tool of a definition.
func toolOf(t testing.TB, server, raw string) *schema.Tool {
	t.Helper()
	var def struct {
		Name        string          `json:"name"`
		InputSchema json.RawMessage `json:"inputSchema"`
	}
	if err := json.Unmarshal([]byte(raw), &def); err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	return &schema.Tool{Server: server, Name: def.Name, Raw: json.RawMessage(raw), Input: def.InputSchema}
}

func TestTheDocumentOfEveryRecordedServerPassesTheLinter(t *testing.T) {
	redocly := filepath.Join(repository, "tools", "npm", "node_modules", "@redocly", "cli", "bin", "cli.js")
	if _, err := os.Stat(redocly); err != nil {
		t.Fatal("the linter is not installed: run the tests with scripts/test.sh, or npm ci in tools/npm")
	}
	recorded, err := filepath.Glob(filepath.Join(repository, "internal", "format", "testdata", "tools", "*.ndjson"))
	if err != nil || len(recorded) < 6 {
		t.Fatalf("%d files of tools, %v", len(recorded), err)
	}
	common, folder := commonOf(t), t.TempDir()
	// Schemas of tools may require a member in one place and define it in another.
	arguments := []string{redocly, "lint", "--extends=recommended", "--skip-rule=no-required-schema-properties-undefined", "--format=stylish"}
	for _, file := range recorded {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		server := strings.TrimSuffix(filepath.Base(file), ".ndjson")
		var tools []documented
		for line := range strings.SplitSeq(strings.TrimSpace(string(text)), "\n") {
			tool := toolOf(t, server, line)
			tools = append(tools, documented{tool, format.Name(server, tool.Name)})
		}
		document, err := common.of("server", server, tools)
		if err != nil {
			t.Fatal(err)
		}
		var read struct {
			Paths map[string]struct {
				Post struct{ OperationID string }
			}
		}
		if err := json.Unmarshal(document, &read); err != nil || len(read.Paths) != len(tools) {
			t.Fatalf("%s: %d operations of %d tools, %v", server, len(read.Paths), len(tools), err)
		}
		ids := make(map[string]bool)
		for path, item := range read.Paths {
			if id := item.Post.OperationID; ids[id] || !regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$`).MatchString(id) {
				t.Errorf("%s has operationId %q", path, id)
			} else {
				ids[id] = true
			}
		}
		at := filepath.Join(folder, server+".json")
		if err := os.WriteFile(at, document, 0o600); err != nil {
			t.Fatal(err)
		}
		arguments = append(arguments, at)
	}
	cmd := exec.Command("node", arguments...)
	cmd.Env = append(os.Environ(), "REDOCLY_SUPPRESS_UPDATE_NOTICE=true", "REDOCLY_TELEMETRY=off", "CI=true")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "valid") || strings.Contains(string(out), "You have") {
		t.Errorf("%v\n%s", err, out)
	}
}
