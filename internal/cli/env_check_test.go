package cli

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
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

// Callyard env knows no access tokens. Without keys it would serve everybody, on an address that the
// issuers permit.
func TestEnvironmentsAreNotOpenIfOnlyTokensAreAccepted(t *testing.T) {
	dir := t.TempDir()
	const door = "data: %s\nfront_door:\n  listen: 0.0.0.0:0\n  public_url: https://calls.example.com\n  issuers:\n    - {name: corp, issuer: https://login.example.com, audiences: [https://calls.example.com]}\n"
	path := func(name string) string { return filepath.Join(dir, name) }
	for name, text := range map[string]string{
		"mcp.json":      `{"mcpServers":{"calculator":{"builtin":"calculator"}}}`,
		"tasks.jsonl":   `{"question":"Do it."}`,
		"env.yaml":      "environments:\n  one:\n    tools: [calculator/*]\n    isolation: shared\n    tasks_file: tasks.jsonl\n",
		"callyard.yaml": strings.Replace(door, "%s", path("data"), 1),
	} {
		if err := os.WriteFile(path(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	args := []string{"--config", path("callyard.yaml"), "--servers", path("mcp.json"), "--environments", path("env.yaml")}
	if said, err := checked(t, args...); err == nil || !strings.Contains(said, "front_door.issuers") {
		t.Errorf("config check: %v, %s", err, said)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	cmd := envCommand()
	cmd.SetArgs(args)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	if err := cmd.ExecuteContext(ctx); err == nil || !strings.Contains(err.Error(), "add a key for the trainers") {
		t.Errorf("env: %v", err)
	}
}
