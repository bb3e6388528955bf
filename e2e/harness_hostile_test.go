package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/callyard/callyard/e2e/hostile"
	"github.com/callyard/callyard/internal/mcptest"
	"github.com/callyard/callyard/pkg/bus/porttest"
)

// hostileTarget is a fabric of separate processes, with an object of each kind
// that requests can name.
type hostileTarget struct {
	door, approver *door
	worker         *workerProcess
	probes         string // host:port of the worker's probes
	doorKnows      hostile.Known
	approverKnows  hostile.Known
}

// openHostileTarget starts the processes. The server everything is the one in the examples of
// the OpenAPI document. Calls of pay are held.
func openHostileTarget(t testing.TB) *hostileTarget {
	t.Helper()
	nats := startNATS(t, t.TempDir())
	b := &hostileTarget{probes: porttest.Address(t)}
	servers := serversFile(t, map[string]entry{
		"everything": {Command: filepath.Join(bin(t), "callyard"), Args: []string{"demo-server"}, RiskLevel: 1},
		"pay":        risky(2, scripted(mcptest.Echo)),
	})
	callers, forCallers := warrantKeys(t, "frontdoor")
	people, forPeople := warrantKeys(t, "approver")
	policy := filepath.Join(t.TempDir(), "policy.yaml")
	write(t, policy, "rules:\n  - name: people\n    match: {server: pay, tool: echo}\n    approval: {groups: [approvers], expires: 1h}\n")
	runs := t.TempDir()
	if err := os.Mkdir(filepath.Join(runs, "known"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(runs, "known", "report.json"), `{"samples":1,"levels":[{"level":"published"}],"scoring":{"reward":{"name":"r"}}}`)
	write(t, filepath.Join(runs, "known", "scores.jsonl"), "")
	b.worker = startWorker(t, setup{nats: nats.url, servers: servers, env: []string{
		"CALLYARD_WORKER_LISTEN=" + b.probes, "CALLYARD_WARRANTS_CALLER_KEYS=" + forCallers, "CALLYARD_WARRANTS_PEOPLE_KEYS=" + forPeople,
	}})
	b.door = startFrontDoor(t, setup{nats: nats.url, env: []string{quickStop, "CALLYARD_WARRANTS_KEY_FILE=" + callers, "CALLYARD_FRONT_DOOR_EVALUATIONS=" + runs}, flags: []string{"--policy", policy}})
	b.approver = startApprover(t, setup{nats: nats.url, config: "approver:\n  drain_delay: 1ms\n  local_groups: [approvers]\n", env: []string{"CALLYARD_WARRANTS_KEY_FILE=" + people}})
	b.door.waitServers(t, 1, "everything", "pay")
	b.know(t)
	return b
}

// know makes a call, a batch, a held call and an approval, and records their IDs.
func (b *hostileTarget) know(t testing.TB) {
	t.Helper()
	h := b.door.hold(t, "pay", "effect", `{"path":"`+filepath.Join(t.TempDir(), "effects")+`","id":"x"}`)
	a := b.door.ask(t, "POST", toolPath("pay", "echo"), `{"text":"x"}`)
	var people held
	if decode(t, a.body, &people); a.status != http.StatusAccepted || people.ApprovalID == "" {
		t.Fatalf("a call that people decide is answered with %d %s", a.status, a.body)
	}
	b.approver.eventually(t, soon, "knowing the approval", func() error {
		if a := b.approver.ask(t, "GET", "/approvals/"+people.ApprovalID, ""); a.status != http.StatusOK {
			return &refusal{a}
		}
		return nil
	})
	var batch struct {
		ID string `json:"id"`
	}
	decode(t, b.door.ask(t, "POST", "/batches", `{"open":true}`).body, &batch)
	call := b.door.ask(t, "POST", toolPath("everything", "echo"), `{"message":"x"}`, "Prefer: respond-async").header.Get("Location")
	_, call, found := strings.Cut(call, "/calls/")
	if !found || batch.ID == "" {
		t.Fatalf("there is no durable call or no batch: %q %q", call, batch.ID)
	}
	b.door.ask(t, "PUT", "/sets/known", `{"include":[{"server":"everything"}]}`)
	var key struct {
		ID string `json:"id"`
	}
	decode(t, b.door.ask(t, "POST", "/keys", `{"name":"known","scopes":["tools:read"]}`).body, &key)
	id := func(v string) map[string]string { return map[string]string{"id": v} }
	server := id("everything")
	b.doorKnows = hostile.Known{
		"/servers/{id}": server, "/servers/{id}/tools": server, "/servers/{id}/prompts": server, "/servers/{id}/resources": server, "/servers/{id}/resources/templates": server,
		"DELETE /servers/{id}": id("nobody"), "/servers/{id}/restart": id("nobody"), "POST /workers/{id}/drain": id("nobody"), "/servers/{id}/tools/{tool}": {"id": "everything", "tool": "echo"}, "PATCH /servers/{id}/tools/{tool}": {"id": "everything", "tool": "fail"},
		"/servers/{id}/resources/{uri}": {"id": "everything", "uri": "demo://one"}, "/servers/{id}/prompts/{name}": {"id": "everything", "name": "greet"},
		"/keys/{id}": id(key.ID), "PATCH /keys/{id}": id(key.ID), "/keys/{id}/rotate": id(key.ID), "DELETE /keys/{id}": id("nobody"),
		"/evaluations/{id}": id("known"), "/evaluations/{id}/page": id("known"),
		"/tenants/{tenant}": {"tenant": "default"}, "/webhooks/deliveries/{id}/retry": id("nobody"),
		"/sets/{name}": {"name": "known"}, "/sets/{name}/openapi.json": {"name": "known"}, "PUT /sets/{name}": {"name": "new"}, "DELETE /sets/{name}": {"name": "nobody"},
		"/calls/{id}": id(call), "/calls/{id}/cancel": id(call), "/calls/{id}/settle": id(call), "/calls/{id}/replay": id(call), "/confirmations/{id}": id(h.ID),
	}
	for _, rest := range []string{"", "/calls", "/cancel", "/events", "/held", "/results", "/seal"} {
		b.doorKnows["/batches/{id}"+rest] = id(batch.ID)
	}
	b.doorKnows["POST /confirmations/{id}"] = map[string]string{"id": h.ID, "body": `{"confirm":true}`}
	b.approverKnows = hostile.Known{
		"/approvals/{id}": id(people.ApprovalID), "/permissions/{id}/revocations": {"id": "perm_x", "body": `{"reason":"x"}`}, "/webhooks/deliveries/{id}/retry": id("nobody"),
		"/approvals/{id}/decisions": {"id": people.ApprovalID, "body": `{"kind":"approve","reason":"x","digest":"sha256:0","allow":{"until":"2030-01-01T00:00:00Z","pattern":{"kind":"same"}}}`},
		"/decisions":                {"body": fmt.Sprintf(`{"decisions":[{"id":%q,"kind":"deny","reason":"x","digest":"sha256:0"}]}`, people.ApprovalID)},
	}
}

// targets returns the attacked targets, with valid requests of each operation.
func (b *hostileTarget) targets(t testing.TB) []hostile.Target {
	t.Helper()
	host := func(d *door) string { return strings.TrimPrefix(d.url, "http://") }
	goldens := func(d *door, known hostile.Known) []hostile.Golden {
		all, err := hostile.Goldens(d.get(t, "/openapi.json"), known)
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	resp, err := b.door.http.Post(b.door.url+"/mcp", "application/json", strings.NewReader(hostile.Initialize))
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	session := resp.Header.Get("Mcp-Session-Id")
	if session == "" {
		t.Fatalf("no session was opened: %d", resp.StatusCode)
	}
	ofDoor := goldens(b.door, b.doorKnows)
	for _, g := range ofDoor {
		if strings.HasPrefix(g.Operation, "POST /batches (") { // lines whose results are streamed at the same time
			g.Operation += " with results"
			g.Path += "?stream=true"
			ofDoor = append(ofDoor, g)
		}
	}
	return []hostile.Target{
		{Name: "front door", Addr: host(b.door), Goldens: ofDoor},
		{Name: "MCP face", Addr: host(b.door), Goldens: append(hostile.MCP("/mcp", "everything__echo", session), hostile.MCP("/mcp/everything", "echo", session)[:2]...)},
		{Name: "approver", Addr: host(b.approver), Goldens: goldens(b.approver, b.approverKnows)},
		{Name: "worker's probes", Addr: b.probes, Goldens: hostile.Probes()},
	}
}

// knownJSON returns the known values for schemathesis.
func knownJSON(t testing.TB, known hostile.Known) string {
	t.Helper()
	text, err := json.Marshal(known)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
