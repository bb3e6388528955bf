package config

import (
	"regexp"
	"strings"
	"testing"
)

func TestServerNameIsDerivedFromItsEntry(t *testing.T) {
	for entry, want := range map[string]string{
		`{"command": "mcp-server-files", "args": ["/srv"]}`:                                               "mcp-server-files",
		`{"command": "/usr/bin/My Server.exe"}`:                                                           "my-server",
		`{"command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem@1.2.3", "/srv"]}`:     "server-filesystem",
		`{"command": "uvx", "args": ["mcp-server-git"]}`:                                                  "mcp-server-git",
		`{"command": "python3", "args": ["-m", "tools.weather"]}`:                                         "tools-weather",
		`{"command": "node", "args": ["./dist/index.js"]}`:                                                "index",
		`{"command": "docker", "args": ["run", "-i", "--rm", "ghcr.io/org/notes:latest"]}`:                "notes",
		`{"command": "docker", "args": ["run", "-e", "hunter2", "image"]}`:                                "docker",
		`{"command": "env", "args": ["TOKEN=hunter2", "x"]}`:                                              "env",
		`{"command": "uvx", "args": ["--token", "hunter2", "x"]}`:                                         "uvx",
		`{"url": "https://mcp.example.com:8443/mcp?key=hunter2", "headers": {"X-API-Key": "hunter2"}}`:    "example-com",
		`{"url": "http://localhost:3000/mcp"}`:                                                            "localhost",
		`{"url": "https://hunter2@api.x.org"}`:                                                            "x-org",
		`{"openapi": "https://docs.example.com/openapi.json", "base_url": "https://api.example.org/v1"}`:  "example-org",
		`{"tool_endpoint": {"url": "https://t.example.com/x", "tools_url": "https://t.example.com/all"}}`: "t-example-com",
		`{"builtin": "calculator"}`:                                                                       "calculator",
		`{"command": "日本"}`:                                                                               "server",
		`{"command": "` + strings.Repeat("long_", 30) + `"}`:                                              "long_long_long_long_long_long_lo",
		`{"command": "a___b"}`:                                                                            "a_b",
	} {
		e, err := ParseServer("x", []byte(entry))
		if err != nil {
			t.Fatalf("%s: %v", entry, err)
		}
		if got := SuggestedID(e); got != want {
			t.Errorf("%s: %q, want %q", entry, got, want)
		}
	}
}

var suggested = regexp.MustCompile(`^[a-z0-9_-]{1,32}$`)

func FuzzSuggestedServerNameIsValid(f *testing.F) {
	f.Add("npx", "-y", "@a/b@1", "")
	f.Add("docker", "run", "ghcr.io/x/y:z", "https://mcp.example.com")
	f.Add("", "", "", "://")
	f.Fuzz(func(t *testing.T, command, a, b, address string) {
		for _, e := range []ServerEntry{{Command: command, Args: []string{a, b}}, {URL: address}, {Docker: &Docker{Image: b}}} {
			id := SuggestedID(e)
			if !suggested.MatchString(id) || idFault(id) != "" || strings.Contains(id, "__") || strings.HasSuffix(id, "_") {
				t.Fatalf("%q for %q %q %q %q", id, command, a, b, address)
			}
		}
	})
}
