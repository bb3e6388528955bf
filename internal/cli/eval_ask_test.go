package cli

import (
	"bytes"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/agent/modeltest"
)

func TestAModelIsAskedAndItsAnswersAreScored(t *testing.T) {
	dir := t.TempDir()
	data := filepath.Join(dir, "data.jsonl")
	line := `{"id":"ID","question":"Show me notes.","tools":[{"name":"read_file","server":"files"},{"name":"write_file","server":"files"}],"target_tools":"read_file"}`
	if err := os.WriteFile(data, []byte(strings.Replace(line, "ID", "1", 1)+"\n"+strings.Replace(line, "ID", "2", 1)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	server := modeltest.New(modeltest.Script{{Calls: []modeltest.Call{{ID: "a", Name: "read_file", Arguments: "{}"}}}})
	server.ByHistory = true
	api := httptest.NewServer(server)
	defer api.Close()
	run := filepath.Join(dir, "run")
	do := func(args ...string) (string, string, int) {
		var stdout, stderr bytes.Buffer
		root := rootCommand()
		root.SetArgs(append([]string{"eval"}, args...))
		root.SetOut(&stdout)
		root.SetErr(&stderr)
		err := root.ExecuteContext(t.Context())
		showError(&stderr, err)
		return stdout.String(), stderr.String(), exitCode(err)
	}
	ask := []string{"run", run, "--data", "jsonl:" + data, "--model", "compatible:m", "--base-url", api.URL}
	if _, notes, code := do(ask...); code != 0 || !strings.Contains(notes, "2 answers, 0 kept") {
		t.Fatalf("exit %d, %s; refused: %v", code, notes, server.Refused())
	}
	if _, notes, code := do(ask...); code != 0 || !strings.Contains(notes, "0 answers, 2 kept") || len(server.Asked()) != 2 {
		t.Errorf("once more: exit %d, %s", code, notes)
	}
	if out, notes, code := do("score", run, "--json"); code != 0 || !strings.Contains(out, `"accuracy"`) {
		t.Errorf("scoring: exit %d, %s%s", code, out, notes)
	}
	if _, notes, code := do(append(ask, "--calls", "text")...); code != exitUsage || !strings.Contains(notes, "another folder") {
		t.Errorf("other settings: exit %d, %s", code, notes)
	}
	if _, notes, code := do("run", run, "--execute", "none"); code != exitUsage {
		t.Errorf("nothing to do: exit %d, %s", code, notes)
	}
}
