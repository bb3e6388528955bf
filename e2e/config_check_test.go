package e2e

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/authn"
	"github.com/callyard/callyard/internal/mcptest"
)

// TestConfigAcceptedByCheckStarts starts configurations that had typical mistakes after they
// have been corrected.
func TestConfigAcceptedByCheckStarts(t *testing.T) {
	t.Parallel()
	_, hash := authn.Generate()
	dir := t.TempDir()
	policy := filepath.Join(dir, "policy.yaml")
	people := "approver:\n  local_groups: [ops]\n"
	keys := "front_door:\n  keys:\n    - {name: ci, hash: '" + hash + "'}\n"
	for name, c := range map[string]struct {
		config, policy string
		entry          entry
	}{
		"nothing":   {},
		"keys":      {config: keys},
		"log":       {config: "log: {level: debug, format: text}\n"},
		"times":     {config: "front_door: {call_timeout: 20s, max_timeout: 1h}\nworker: {start_timeout: 1m, sessions: 2}\n"},
		"nats":      {config: "nats: {listen: '127.0.0.1:0'}\n"},
		"condition": {config: people, policy: "rules:\n  - {name: a, when: 'has(args.x) && args.x == 5', level: 2}\n  - {name: b, match: {tool: 'd*'}, approval: {groups: [ops]}}\n"},
		"risk":      {entry: entry{RiskLevel: 2}},
		"labels":    {config: "worker:\n  labels: {zone: a}\n", entry: entry{Labels: map[string]string{"zone": "a"}}},
	} {
		t.Run(name, func(t *testing.T) {
			e := scripted(mcptest.Echo)
			e.RiskLevel, e.Labels = c.entry.RiskLevel, c.entry.Labels
			s := setup{servers: serversFile(t, map[string]entry{"tools": e}), config: c.config, env: []string{quickStop}}
			if c.policy != "" {
				write(t, policy, c.policy)
				s.flags = []string{"--policy", policy}
			}
			path := filepath.Join(t.TempDir(), "callyard.yaml")
			write(t, path, c.config)
			args := append([]string{"config", "check", "--config", path, "--servers", s.servers}, s.flags...)
			if code, _, said := command(t, nil, args...); code != 0 || !strings.Contains(said, "The configuration is valid") {
				t.Fatalf("code %d: %s", code, said)
			}
			up := startUp(t, s)
			if name != "keys" { // without that key it does not list its servers
				up.waitServers(t, 1, "tools")
			}
		})
	}
}
