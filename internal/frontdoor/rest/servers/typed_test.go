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

// commonOf reads the released document of the API.
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

// toolOf builds a tool from a definition.
func toolOf(t testing.TB, server, raw string) *schema.Tool {
	t.Helper()
	var def struct {
		Name        string          `json:"name"`
		InputSchema json.RawMessage `json:"inputSchema"`
	}
	if err := json.Unmarshal([]byte(raw), &def); err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	return &schema.Tool{Server: schema.ServerID(server), Name: def.Name, Raw: json.RawMessage(raw), Input: def.InputSchema}
}

// recordedDocuments writes the document of every recorded server into a folder and returns their
// paths.
func recordedDocuments(t *testing.T) (paths []string) {
	t.Helper()
	recorded, err := filepath.Glob(filepath.Join(repository, "internal", "format", "testdata", "tools", "*.ndjson"))
	if err != nil || len(recorded) < 6 {
		t.Fatalf("%d files of tools, %v", len(recorded), err)
	}
	common, folder := commonOf(t), t.TempDir()
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
		checkOperations(t, server, document, len(tools))
		at := filepath.Join(folder, server+".json")
		if err := os.WriteFile(at, document, 0o600); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, at)
	}
	return paths
}

// checkOperations checks that a document has one operation for each tool, with a unique name.
func checkOperations(t *testing.T, server string, document []byte, tools int) {
	t.Helper()
	var read struct {
		Paths map[string]struct {
			Post struct{ OperationID string }
		}
	}
	if err := json.Unmarshal(document, &read); err != nil || len(read.Paths) != tools {
		t.Fatalf("%s: %d operations of %d tools, %v", server, len(read.Paths), tools, err)
	}
	ids := make(map[string]bool)
	for path, item := range read.Paths {
		if id := item.Post.OperationID; ids[id] || !regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$`).MatchString(id) {
			t.Errorf("%s has operationId %q", path, id)
		} else {
			ids[id] = true
		}
	}
}

func TestTheDocumentOfEveryRecordedServerPassesTheLinter(t *testing.T) {
	redocly := filepath.Join(repository, "tools", "npm", "node_modules", "@redocly", "cli", "bin", "cli.js")
	if _, err := os.Stat(redocly); err != nil {
		t.Fatal("the linter is not installed: run the tests with scripts/test.sh, or npm ci in tools/npm")
	}
	// Schemas of tools may require a member in one place and define it in another.
	arguments := []string{redocly, "lint", "--extends=recommended", "--skip-rule=no-required-schema-properties-undefined", "--format=stylish"}
	cmd := exec.Command("node", append(arguments, recordedDocuments(t)...)...)
	cmd.Env = append(os.Environ(), "REDOCLY_SUPPRESS_UPDATE_NOTICE=true", "REDOCLY_TELEMETRY=off", "CI=true")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "valid") || strings.Contains(string(out), "You have") {
		t.Errorf("%v\n%s", err, out)
	}
}

// The validator checks a document against the schema of OpenAPI 3.1, and each schema in it against
// that of JSON Schema.
func TestTheDocumentOfEveryRecordedServerPassesTheValidator(t *testing.T) {
	python := filepath.Join(repository, ".cache", "python", "bin", "python")
	if _, err := os.Stat(python); err != nil {
		t.Fatal("the validator is not installed: run the tests with scripts/test.sh, or scripts/test.sh --clients")
	}
	documents := recordedDocuments(t)
	out, err := exec.Command(python, append([]string{"-m", "openapi_spec_validator", "--schema", "3.1"}, documents...)...).CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	for _, document := range documents {
		if !strings.Contains(string(out), document+": OK\n") {
			t.Errorf("%s is not valid:\n%s", document, out)
		}
	}
}
