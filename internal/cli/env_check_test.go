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
		"mcp.json":    `{"mcpServers":{"files":{"command":"sh"},"remote":{"url":"http://127.0.0.1:1/mcp"},"boxed":{"command":"sh","riskLevel":3,"docker":{"image":"i:1"}},"taken":{"command":"sh","riskLevel":3,"docker":{"image":"i:1","volumes":["/srv/x:/episode/x:ro"]}}}}`,
		"tasks.jsonl": `{"question":"Do it."}`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(dir, "env.yaml")
	for _, c := range []struct{ isolation, tools, good, want string }{
		{"session", "files/*", "remote/*", "use isolation process"},
		{"process", "remote/*", "files/*", "use isolation session or shared"},
		{"process", "boxed/*", "files/*", "no process that this worker can start"},
		{"sandbox", "files/*", "boxed/*", "has no container; set its image in docker.image"},
		{"sandbox", "taken/*", "boxed/*", "has a volume at /episode/x"},
		{"shared", "nothing/*", "files/*", "uses no server"},
	} {
		isolation := c.isolation
		text := "environments:\n  one:\n    tools: [\"" + c.tools + "\"]\n    tasks_file: tasks.jsonl\n    isolation: " + isolation + "\n"
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		said, err := checked(t, "--servers", filepath.Join(dir, "mcp.json"), "--environments", file)
		if err == nil || !strings.Contains(said, c.want) {
			t.Errorf("isolation %s: %v, %s", isolation, err, said)
		}
		text = strings.ReplaceAll(text, c.tools, c.good)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if said, err := checked(t, "--servers", filepath.Join(dir, "mcp.json"), "--environments", file); err != nil {
			t.Errorf("isolation %s: %v, %s", isolation, err, said)
		}
	}
}
