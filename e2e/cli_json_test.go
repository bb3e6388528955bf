package e2e

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
)

func TestEveryCommandPrintsJSONOnRequest(t *testing.T) {
	withBench(t)
	up := startUp(t, setup{env: []string{quickStop}})
	up.waitServers(t, 1, "demo")
	dir := t.TempDir()
	good, bad, calls, examples := filepath.Join(dir, "policy.yaml"), filepath.Join(dir, "bad.yaml"), filepath.Join(dir, "calls.ndjson"), filepath.Join(dir, "examples.yaml")
	write(t, good, holdAdd)
	write(t, bad, "rules: 7\n")
	write(t, calls, `{"server":"demo","tool":"echo","arguments":{"message":"a"}}`+"\n")
	write(t, examples, "- {name: sum, server: demo, tool: add}\n")
	env := []string{"CALLYARD_URL=" + up.url, "CALLYARD_APPROVER_URL=" + up.says(t, `approvals\s+(http://\S+)`)[1]}
	id := batchOf(t, env, calls)
	for _, c := range []struct {
		args string // separated by "|"
		code int
		want string // in the JSON
	}{
		{"call|demo|echo|message=a", 0, `"Echo: a"`},
		{"calls", 0, `"calls":[`},
		{"tools", 0, `"name":"echo"`},
		{"tools|show|demo|echo", 0, `"echo"`},
		{"tools|disable|demo|sleep", 0, `"enabled":false`},
		{"tools|enable|demo|sleep", 0, `"enabled":true`},
		{"servers", 0, `"demo"`},
		{"servers|show|demo", 0, `"demo"`},
		{"workers", 0, `"worker`},
		{"tenants", 0, `{"tenants":[{"id":"default",`},
		{"tenants|show|default", 0, `"weight":1`},
		{"batch|" + calls + "|--new", 0, `"state":"completed"`},
		{"batches", 0, `"batches":[`},
		{"batches|show|" + id, 0, id},
		{"batches|cancel|" + id, 0, id},
		{"webhooks", 0, `"deliveries":[]`},
		{"webhooks|retry|call_none", 3, `"`},
		{"approvals", 0, `"approvals":[]`},
		{"permissions", 0, `"permissions":[]`},
		{"doctor", 0, ``},
		{"mcp|config|--client|codex", 0, `"client":"codex"`},
		{"keys|new|ci", 0, `"entry":`},
		{"keys|warrant|pair", 0, `"key_id":`},
		{"slack|manifest", 0, `"display_information"`},
		{"config|check|--policy|" + good, 0, `"good":true`},
		{"config|check|--listen|nowhere", 2, `"good":false`},
		{"policy|check|" + good, 0, `"good":true`},
		{"policy|check|" + bad, 2, `"good":false`},
		{"policy|test|--policy|" + good + "|" + examples, 0, `"policy_version"`},
		{"bench|--duration|50ms|--warmup|10ms|--rounds|1|-c|1|--out||demo|echo|{\"message\":\"a\"}", 0, `"`},
		{"version", 0, `"program":"callyard"`},
	} {
		code, stdout, stderr := command(t, env, append(strings.Split(c.args, "|"), "--json")...)
		if code != c.code || !json.Valid([]byte(stdout)) || !strings.Contains(stdout, c.want) {
			t.Errorf("%s: code %d, want %d and %s\n%.2000s\n%.500s", c.args, code, c.code, c.want, stdout, stderr)
		}
	}
}

// batchOf runs a batch to its end and returns its id.
func batchOf(t *testing.T, env []string, calls string) string {
	t.Helper()
	code, stdout, stderr := command(t, env, "batch", calls, "--json")
	var b struct{ ID string }
	if err := json.Unmarshal([]byte(stdout), &b); err != nil || code != 0 {
		t.Fatalf("%d %s%s", code, stdout, stderr)
	}
	return b.ID
}

func TestUpAndInitPrintJSONOnRequest(t *testing.T) {
	p := setup{flags: []string{"--json"}, env: []string{quickStop}}.program(t, "callyard")
	line := start(t, p).says(t, `(?m)^(\{"version":.*\})$`)[1]
	var said struct{ URL, MCP, Approver string }
	if err := json.Unmarshal([]byte(line), &said); err != nil || said.MCP != said.URL+"/mcp" || said.Approver == "" {
		t.Errorf("%v %s", err, line)
	}
	nats := startNATS(t, t.TempDir())
	if code, stdout, stderr := command(t, nil, "init", "--nats", nats.url, "--json"); code != 0 || stdout != `{"ready":true}`+"\n" {
		t.Errorf("%d %s%s", code, stdout, stderr)
	}
}
