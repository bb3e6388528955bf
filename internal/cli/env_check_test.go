package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestConfigCheckComparesEnvironmentsWithServers(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"mcp.json":    `{"mcpServers":{"files":{"command":"sh"},"remote":{"url":"http://127.0.0.1:1/mcp"}}}`,
		"tasks.jsonl": `{"question":"Do it."}`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(dir, "env.yaml")
	for isolation, c := range map[string]struct{ tools, want string }{
		"session": {"files/*", "use isolation process"},
		"process": {"remote/*", "use isolation session or shared"},
		"shared":  {"nothing/*", "uses no server"},
	} {
		text := "environments:\n  one:\n    tools: [\"" + c.tools + "\"]\n    tasks_file: tasks.jsonl\n    isolation: " + isolation + "\n"
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		said, err := checked(t, "--servers", filepath.Join(dir, "mcp.json"), "--environments", file)
		if err == nil || !strings.Contains(said, c.want) {
			t.Errorf("isolation %s: %v, %s", isolation, err, said)
		}
		text = strings.ReplaceAll(text, c.tools, map[string]string{"session": "remote/*", "process": "files/*", "shared": "files/*"}[isolation])
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if said, err := checked(t, "--servers", filepath.Join(dir, "mcp.json"), "--environments", file); err != nil {
			t.Errorf("isolation %s: %v, %s", isolation, err, said)
		}
	}
}
