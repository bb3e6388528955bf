package frontdoor_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/authn"
	"github.com/callyard/callyard/internal/authn/scope"
	"github.com/callyard/callyard/internal/frontdoor"
	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/schema"
)

// The permissions of roles according to the documentation: p is platform-admin, t tenant-admin, d
// developer, c caller, a auditor. They are independent of the table of package scope, so that a
// mistake in either is detected.
const (
	everybody = "ptdca"
	reads     = "ptda"
	callers   = "ptdc"
	manages   = "pt"
	operates  = "p"  // in the default tenant
	verifies  = "pa" // in the default tenant
	audits    = "pta"
	ownSets   = "p,pt" // in the default tenant, whose sets are the installation's, and in others
)

var mayOperate = map[string]string{
	"get-health": everybody, "get-livez": everybody, "get-readyz": everybody, "get-version": everybody,
	"list-evaluations": reads, "get-evaluation": reads, "get-evaluation-page": reads,
	"get-metrics": reads, "list-front-doors": reads, "get-configuration": reads, "list-workers": reads, "get-events": reads, "get-server-pins": reads, "list-switches": reads,
	"list-servers": everybody, "get-server": everybody, "list-server-tools": everybody, "list-server-resources": everybody, "list-server-resource-templates": everybody, "list-server-prompts": everybody,
	"get-server-openapi": everybody, "get-set-openapi": everybody, "list-sets": everybody, "get-set": everybody, "list-tools": everybody, "search-tools": everybody, "preflight": everybody, "test-policy": everybody, "convert-tools": everybody,
	"call-tool": callers, "create-call": callers, "create-tool-calls": callers, "confirm-call": callers, "confirm-calls": callers, "read-resource": callers, "get-prompt": callers,
	"create-batch": callers, "add-batch-calls": callers, "seal-batch": callers, "cancel-batch": callers, "cancel-call": callers, "replay-call": callers,
	"get-call": everybody, "list-calls": everybody, "list-batches": everybody, "get-batch": everybody, "get-batch-results": everybody, "get-batch-events": everybody, "get-batch-held": everybody, "get-usage": everybody,
	"put-set": ownSets, "remove-set": ownSets, "switch-tools": operates, "switch-tool": operates, "add-server": operates, "remove-server": operates, "restart-server": operates, "drain-worker": operates, "accept-server-pins": operates, "dry-run-policy": operates, "get-state": operates, "put-state": operates,
	"list-audit": audits, "verify-audit": verifies, "list-tenants": audits, "get-tenant": audits, "erase-tenant": operates,
	"list-webhook-deliveries": manages, "retry-webhook-delivery": manages, "settle-call": manages, "list-keys": manages, "get-key": manages, "create-key": manages, "update-key": manages, "rotate-key": manages, "revoke-key": manages,
}

var mayAsk = map[string]string{
	"tools/list": everybody, "resources/list": everybody, "resources/templates/list": everybody, "prompts/list": everybody, "subscriptions/listen": everybody, "resources/subscribe": everybody, "resources/unsubscribe": everybody,
	"tools/call": callers, "resources/read": callers, "prompts/get": callers, "completion/complete": callers,
	"tasks/get": everybody, "tasks/update": everybody, "tasks/cancel": everybody,
}

// operation is an operation of the document of a front door.
type operation struct{ id, method, path string }

func (d *door) operations() (all []operation) {
	d.t.Helper()
	_, _, body := d.do("GET", "/openapi.json", "")
	var document struct {
		Paths map[string]map[string]json.RawMessage `json:"paths"`
	}
	if err := json.Unmarshal([]byte(body), &document); err != nil {
		d.t.Fatal(err)
	}
	parameter := regexp.MustCompile(`\{[^}]*\}`)
	for path, methods := range document.Paths {
		for method, raw := range methods {
			var op struct {
				ID string `json:"operationId"`
			}
			if json.Unmarshal(raw, &op) == nil && op.ID != "" {
				all = append(all, operation{op.ID, strings.ToUpper(method), parameter.ReplaceAllString(path, "nobody")})
			}
		}
	}
	slices.SortFunc(all, func(a, b operation) int { return strings.Compare(a.id, b.id) })
	return all
}

// lacksScope sends a request and reports whether it was refused because of the scopes of its key.
func (d *door) lacksScope(key, method, path, body string) (status int, lacks bool) {
	d.t.Helper()
	r, err := http.NewRequestWithContext(d.t.Context(), method, d.base+path, strings.NewReader(body))
	if err != nil {
		d.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+key)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	resp, err := d.http.Do(r)
	if err != nil {
		d.t.Fatal(err)
	}
	defer resp.Body.Close() // do not read a stream to its end
	if resp.StatusCode != http.StatusForbidden {
		return resp.StatusCode, false
	}
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		d.t.Fatal(err)
	}
	// Operations of the default tenant only are refused to others as if they lacked a scope.
	return resp.StatusCode, strings.Contains(resp.Header.Get("Www-Authenticate"), "insufficient_scope") || strings.Contains(string(text), "Only credentials of the default tenant")
}

func TestOperationsAreAllowedOnlyToDocumentedRoles(t *testing.T) {
	srv := bustest.Start(t)
	t.Cleanup(startCountingWorker(t, srv).let)
	var configured []authn.Key
	secrets := make(map[string]string) // by role and tenant
	for _, role := range scope.Roles() {
		for _, tenant := range []schema.TenantID{"", "billing"} {
			key, hash := authn.Generate()
			name := fmt.Sprintf("%s-%s", role, tenant)
			configured = append(configured, authn.Key{Name: name, Tenant: tenant, Role: role, Hash: hash})
			secrets[name] = key
		}
	}
	d := openDoor(t, srv, frontdoor.Options{Config: settings.FrontDoor{Keys: configured}})
	all := d.operations()
	for _, op := range all {
		if _, ok := mayOperate[op.id]; !ok {
			t.Errorf("%s %s (%s) has no row in the table of this test, nor in docs/reference/roles.md: say who may do it", op.method, op.path, op.id)
		}
	}
	if got := scope.Operations(); len(got) != len(all) || len(mayOperate) != len(all) {
		t.Errorf("%d operations are served, %d are in the table of package scope, %d in this one", len(all), len(got), len(mayOperate))
	}
	for _, method := range scope.Methods() {
		if _, ok := mayAsk[method]; !ok {
			t.Errorf("MCP method %s has no row", method)
		}
	}
	for _, role := range scope.Roles() {
		letter := string(role[0])
		for tenant, key := range map[string]string{"": secrets[string(role)+"-"], "billing": secrets[string(role)+"-billing"]} {
			for _, op := range all {
				who := mayOperate[op.id]
				if inDefault, inOthers, differ := strings.Cut(who, ","); differ {
					who = inDefault
					if tenant != "" {
						who = inOthers
					}
				}
				may := strings.Contains(who, letter) && !(tenant != "" && (mayOperate[op.id] == operates || mayOperate[op.id] == verifies))
				body := ""
				if op.method != http.MethodGet && op.method != http.MethodDelete {
					body = "{}"
				}
				if status, lacks := d.lacksScope(key, op.method, op.path, body); lacks == may || status == http.StatusUnauthorized {
					t.Errorf("%s of tenant %q: %s %s (%s): %d, allowed %t", role, tenant, op.method, op.path, op.id, status, may)
				}
			}
			for method, who := range mayAsk {
				body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{}}`, method)
				if status, lacks := d.lacksScope(key, http.MethodPost, "/mcp", body); lacks == strings.Contains(who, letter) || status == http.StatusUnauthorized {
					t.Errorf("%s of tenant %q: %s: %d", role, tenant, method, status)
				}
			}
		}
	}
}

func TestKeysCreatedAtRunTimeHaveTheirRoles(t *testing.T) {
	srv := bustest.Start(t)
	t.Cleanup(startCountingWorker(t, srv).let)
	boss, hash := authn.Generate()
	d := openDoor(t, srv, frontdoor.Options{Config: settings.FrontDoor{Keys: []authn.Key{{Name: "boss", Tenant: "billing", Role: scope.TenantAdmin, Hash: hash}}}})
	auditor := d.newKey(d.key, `{"name":"audit","role":"auditor"}`)
	if !slices.Equal(auditor.Scopes, scope.Auditor.Scopes()) {
		t.Errorf("%v", auditor.Scopes)
	}
	k := d.newKey(boss, `{"name":"billing/agent","role":"developer"}`)
	for _, c := range []struct {
		key, method, path, body string
		status                  int
	}{
		{k.Secret, "POST", "/servers/s/tools/read", "{}", 200}, {k.Secret, "GET", "/keys", "", 403}, {k.Secret, "GET", "/calls?principal=ci", "", 403},
		{auditor.Secret, "POST", "/servers/s/tools/read", "{}", 403}, {auditor.Secret, "GET", "/calls?principal=ci", "", 200}, {auditor.Secret, "GET", "/calls?principal=*", "", 200},
		{boss, "GET", "/calls?principal=ci", "", 200}, {d.key, "GET", "/calls?principal=boss", "", 403}, // as before roles existed
		{boss, "POST", "/keys", `{"name":"billing/more","role":"platform-admin"}`, 403}, {boss, "POST", "/keys", `{"name":"billing/more","scopes":["admin"]}`, 403}, {boss, "POST", "/keys", `{"name":"more","role":"caller","tenant":"default"}`, 403},
		{d.key, "POST", "/keys", `{"name":"x","role":"root"}`, 400}, {d.key, "POST", "/keys", `{"name":"x","role":"caller","scopes":["admin"]}`, 400}, {d.key, "POST", "/keys", `{"name":"x"}`, 400},
	} {
		if status, _, answer := d.with(c.key, c.method, c.path, c.body); status != c.status {
			t.Errorf("%s %s %s: %d, want %d: %s", c.method, c.path, c.body, status, c.status, answer)
		}
	}
	// Scopes replace a role, and a role replaces scopes.
	status, h, answer := d.with(d.key, "PATCH", "/keys/"+k.ID, `{"scopes":["tools:read"]}`, "If-Match", "*")
	if status != 200 || strings.Contains(answer, `"role"`) {
		t.Fatalf("%d %s", status, answer)
	}
	if status, _, answer = d.with(d.key, "PATCH", "/keys/"+k.ID, `{"role":"caller"}`, "If-Match", h.Get("Etag")); status != 200 || !strings.Contains(answer, `"role":"caller"`) || strings.Contains(answer, "tools:read") {
		t.Fatalf("%d %s", status, answer)
	}
}
