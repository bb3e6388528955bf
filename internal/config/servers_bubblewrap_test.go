package config

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

func TestServerEntrySelectsItsSandbox(t *testing.T) {
	servers, err := LoadServers(write(t, "mcp.json", `{"mcpServers": {
		"a": {"command": "x", "riskLevel": 3, "sandbox": "bubblewrap", "bubblewrap": {"memory": 67108864, "time": "5s", "volumes": ["/srv/a:/a:ro"], "env": {"KEY": "hunter2"}}},
		"b": {"command": "x", "sandbox": "container", "docker": {"image": "i:1", "egress": ["api.example.com:443"]}},
		"c": {"command": "x"}
	}}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	a, b, c := servers.Entries[0], servers.Entries[1], servers.Entries[2]
	if a.Sandbox != SandboxBubblewrap || a.Bubblewrap == nil || a.Bubblewrap.Memory != 64<<20 || a.Bubblewrap.Time != 5*time.Second || len(a.Bubblewrap.Volumes) != 1 {
		t.Errorf("a has %q, %+v", a.Sandbox, a.Bubblewrap)
	}
	if b.Sandbox != "" || b.Docker == nil || len(b.Docker.Egress) != 1 || c.Sandbox != "" || c.Bubblewrap != nil {
		t.Errorf("b has %q, %+v; c has %q", b.Sandbox, b.Docker, c.Sandbox)
	}
	shown, err := json.Marshal(a)
	if err != nil || strings.Contains(string(shown)+a.String(), "hunter2") || !strings.Contains(a.String(), "bubblewrap") {
		t.Errorf("it is shown as %s, %s, %v", shown, a, err)
	}
}

func TestASandboxThatCannotBeHonouredIsAFault(t *testing.T) {
	for entry, says := range map[string]string{
		`"command": "x", "sandbox": "firejail"`:                                       "not a known isolation",
		`"command": "x", "sandbox": ""`:                                               "not a known isolation",
		`"command": "x", "sandbox": true`:                                             "sandbox",
		`"command": "x", "sandbox": "container"`:                                      "a container requires an image",
		`"command": "x", "sandbox": "bubblewrap", "docker": {"image": "i:1"}`:         "stronger than bubblewrap",
		`"url": "https://h.example", "sandbox": "bubblewrap"`:                         "does not run here",
		`"command": "x", "bubblewrap": {}`:                                            `add "sandbox": "bubblewrap"`,
		`"command": "x", "sandbox": "container", "docker": {}, "bubblewrap": {}`:      `add "sandbox": "bubblewrap"`,
		`"command": "x", "sandbox": "bubblewrap", "bubblewrap": {"privileged": true}`: "privileged",
		`"riskLevel": 3, "sandbox": "bubblewrap"`:                                     "command",
	} {
		if _, err := LoadServers(write(t, "mcp.json", `{"mcpServers": {"a": {`+entry+`}}}`), nil); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", entry, err)
		}
	}
}
