package frontdoor_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/authn"
	"github.com/callyard/callyard/internal/authn/scope"
	"github.com/callyard/callyard/internal/frontdoor"
	"github.com/callyard/callyard/internal/kit/mcpwire"
	"github.com/callyard/callyard/internal/kit/polltest"
	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/internal/tenants"
	"github.com/callyard/callyard/internal/toolset"
	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/schema"
)

// tenantAdminFabric is a front door for the tenants red and blue, each with an administrator and a developer.
// Its servers are s and vault. The installation has the set all of both, and reads of s.
type tenantAdminFabric struct {
	*door
	srv  *bustest.Server
	keys map[string]string // by tenant and role: red-admin, red-dev, and so on
}

// openTenantAdminFabric opens the fabric. A root has all scopes. With the section tenants, blue does not see
// vault; without it, every caller sees everything.
func openTenantAdminFabric(t *testing.T, section bool) *tenantAdminFabric {
	t.Helper()
	srv := bustest.Start(t)
	t.Cleanup(startCountingWorker(t, srv, "vault").let)
	e := &tenantAdminFabric{srv: srv, keys: make(map[string]string)}
	var o frontdoor.Options
	if section {
		o.Tenants = tenants.New(settings.Tenants{"red": {Servers: []string{"s", "vault"}}, "blue": {Servers: []string{"s"}}})
	}
	for _, tenant := range []schema.TenantID{"red", "blue", schema.DefaultTenant} {
		for name, role := range map[string]scope.Role{"admin": scope.TenantAdmin, "dev": scope.Developer, "root": ""} {
			key, hash := authn.Generate()
			as := string(tenant) + "-" + name
			e.keys[as] = key
			o.Config.Keys = append(o.Config.Keys, authn.Key{Name: as, Tenant: tenant.Stored(), Role: role, Hash: hash})
		}
	}
	o.Config.Sets = []toolset.Set{{Name: "all", Include: []toolset.Selector{{}}}, {Name: "reads", Include: []toolset.Selector{{Server: "s", Tool: "read"}}}}
	e.door = openDoor(t, srv, o)
	e.knows("vault")
	return e
}

// knows waits until the tools of a server are known.
func (e *tenantAdminFabric) knows(server schema.ServerID) {
	changes, done := e.in.Catalog().Changes()
	defer done()
	for {
		if _, err := e.in.Catalog().Tool(server, "read"); err == nil {
			return
		}
		<-changes
	}
}

// must sends a request, checks the status of the answer, and returns the answer.
func (e *tenantAdminFabric) must(status int, key, method, path, body string, header ...string) string {
	e.t.Helper()
	got, _, answer := e.with(key, method, path, body, header...)
	if got != status {
		e.t.Errorf("%s %s %s: %d, want %d: %s", method, path, body, got, status, answer)
	}
	return answer
}

// surfaces are the requests that name a set, in all protocols.
var surfaces = []struct{ method, path, body string }{
	{"GET", "/sets/SET", ""}, {"GET", "/sets/SET/openapi.json", ""}, {"GET", "/tools?set=SET", ""}, {"GET", "/tools?format=openai&set=SET", ""}, {"GET", "/tools?format=anthropic&set=SET&query=read", ""},
	{"GET", "/tools/search?q=read&set=SET", ""}, {"POST", "/tool-calls?set=SET", `{"tool_calls":[{"id":"1","type":"function","function":{"name":"s__read","arguments":"{}"}}]}`},
	{"POST", "/mcp/@SET", modern("tools/list", "")}, {"POST", "/mcp/@SET", modern("tools/call", `"name":"s__read","arguments":{}`)}, {"POST", "/mcp/@SET?mode=search", modern("tools/call", `"name":"find_tools","arguments":{"query":"read"}`)},
	{"GET", "/sets", ""}, {"GET", "/tools", ""},
}

// asked returns the answer of a surface about a set, without the name of the set.
func (e *tenantAdminFabric) asked(key, set string, n int) string {
	e.t.Helper()
	s := surfaces[n]
	var header []string
	if strings.HasPrefix(s.path, "/mcp") {
		var m struct {
			Method string
			Params struct{ Name string }
		}
		if err := json.Unmarshal([]byte(s.body), &m); err != nil {
			e.t.Fatal(err)
		}
		header = []string{"Accept", "application/json, text/event-stream", "Mcp-Protocol-Version", mcpwire.Modern, "Mcp-Method", m.Method, "Mcp-Name", m.Params.Name}
	}
	status, _, answer := e.with(key, s.method, strings.ReplaceAll(s.path, "SET", set), s.body, header...)
	answer, _, _ = strings.Cut(answer, `"request_id"`)
	return fmt.Sprint(status, " ", volatile.ReplaceAllString(strings.ReplaceAll(answer, set, "SET"), "…"))
}

// TestTenantSetIsVisibleOnlyToItsTenant requests a set of red on every surface: members of red
// find it, all others get the answer for a set that never existed.
func TestTenantSetIsVisibleOnlyToItsTenant(t *testing.T) {
	for _, section := range []bool{true, false} {
		e := openTenantAdminFabric(t, section)
		e.must(200, e.keys["red-admin"], "PUT", "/sets/mine", `{"include":[{"tool":"read"}]}`)
		for n, s := range surfaces {
			for _, as := range []string{"red-admin", "red-dev"} {
				if got := e.asked(e.keys[as], "mine", n); !strings.HasPrefix(got, "200 ") || !strings.Contains(got, "s__read") && !strings.Contains(got, `"read`) && s.path != "/sets" && s.method == "GET" {
					t.Errorf("section %t: %s asks %s %s: %s", section, as, s.method, s.path, got)
				}
			}
			for _, as := range []string{"blue-admin", "blue-dev", "default-admin", "default-dev", ""} {
				key := e.keys[as]
				if as == "" {
					key = e.key // all scopes, in the default tenant
				}
				if got, want := e.asked(key, "mine", n), e.asked(key, "none", n); got != want {
					t.Errorf("section %t: %q asks %s %s for the set of red and gets\n%s\nnot, as for one that never was,\n%s", section, as, s.method, s.path, got, want)
				}
			}
		}
		// Two tenants can use the same name independently, and each gets its own set.
		e.must(200, e.keys["blue-admin"], "PUT", "/sets/mine", `{"include":[{"tool":"write"}]}`, "If-None-Match", "*")
		for as, tools := range map[string][2]string{"red-dev": {"s__read", "s__write"}, "blue-dev": {"s__write", "s__read"}} {
			for _, n := range []int{0, 3, 7} {
				if got := e.asked(e.keys[as], "mine", n); !strings.Contains(got, tools[0]) || strings.Contains(got, tools[1]) {
					t.Errorf("section %t: %s gets %s", section, as, got)
				}
			}
		}
		if got := e.asked(e.keys["red-dev"], "mine", 0); !strings.Contains(got, "vault__read") {
			t.Errorf("red has %s", got)
		}
		if got := e.asked(e.keys["blue-dev"], "mine", 0); strings.Contains(got, "vault") == section {
			t.Errorf("section %t: blue has %s", section, got)
		}
	}
}

func TestTenantAdministratorsManageTheSetsOfTheirTenant(t *testing.T) {
	e := openTenantAdminFabric(t, true)
	admin, dev := e.keys["red-admin"], e.keys["red-dev"]
	const body = `{"include":[{"tool":"read"}]}`
	status, h, answer := e.with(admin, "PUT", "/sets/mine", body)
	tag := h.Get("Etag")
	if status != 200 || tag == "" || !strings.Contains(answer, `"tenant":"red"`) || !strings.Contains(answer, `"by":"red-admin"`) {
		t.Fatalf("%d %v %s", status, h, answer)
	}
	e.must(428, admin, "PUT", "/sets/mine", body)
	e.must(412, admin, "PUT", "/sets/mine", body, "If-Match", `"999"`)
	e.must(412, admin, "PUT", "/sets/mine", body, "If-None-Match", "*")
	e.must(403, dev, "PUT", "/sets/mine", body, "If-Match", tag)
	e.must(403, dev, "DELETE", "/sets/mine", "", "If-Match", tag)
	e.must(200, admin, "PUT", "/sets/mine", `{"include":[{"tool":"read"}],"exclude":[{"server":"vault"}]}`, "If-Match", tag)
	// The manager of a set sees all of it, even if it has no tools. Others do not.
	if got := e.must(200, admin, "GET", "/sets/mine", ""); !strings.Contains(got, `"exclude"`) || strings.Contains(got, "vault__read") {
		t.Error(got)
	}
	e.must(200, admin, "PUT", "/sets/empty", `{"include":[{"server":"soon"}]}`)
	e.must(200, admin, "GET", "/sets/empty", "")
	e.must(404, dev, "GET", "/sets/empty", "")
	if got := e.must(200, admin, "GET", "/sets", ""); !strings.Contains(got, `"empty"`) || !strings.Contains(got, `"tenant":"default"`) {
		t.Error(got)
	}
	// Members of a tenant cannot change a set of the installation, or use the name of one that the
	// tenant sees.
	e.must(409, admin, "PUT", "/sets/reads", body)
	e.must(409, admin, "PUT", "/sets/reads", body, "If-Match", `"1"`)
	e.must(403, admin, "DELETE", "/sets/reads", "", "If-Match", "*")
	// An administrator of the default tenant with only admin:tenant is no administrator of the
	// installation.
	e.must(403, e.keys["default-admin"], "PUT", "/sets/other", body)
	e.must(200, e.key, "PUT", "/sets/other", body)
	e.must(403, e.keys["default-admin"], "DELETE", "/sets/other", "", "If-Match", "*")
	for path, body := range map[string]string{"/sets/bad": `{"include":[{"set":"gone"}]}`, "/sets/worse": `{"include":[]}`} {
		e.must(400, admin, "PUT", path, body)
	}
	e.must(200, admin, "DELETE", "/sets/mine", "", "If-Match", "*")
	e.must(404, admin, "GET", "/sets/mine", "")
	// The audit record contains each act with its tenant, including refused ones.
	for _, want := range []string{"put-set /sets/mine red red-admin 200", "put-set /sets/mine red red-dev 403", "remove-set /sets/mine red red-admin 200", "put-set /sets/reads red red-admin 409", "remove-set /sets/reads red red-admin 403"} {
		polltest.Within(t, 30*time.Second, "the record "+want, func() bool { // ends are stored soon after the answer
			for _, all := range records(t, e.srv) {
				for i := range all {
					if fmt.Sprint(all[i].Operation, " ", all[i].Path, " ", all[i].Tenant, " ", all[i].By, " ", all[i].Status) == want {
						return true
					}
				}
			}
			return false
		})
	}
}

// mayCall returns the tools that a key sees, as SERVER/TOOL, and calls one to compare.
func (e *tenantAdminFabric) mayCall(key string) string {
	e.t.Helper()
	var list struct {
		Tools []struct{ Server, Name string }
	}
	if err := json.Unmarshal([]byte(e.must(200, key, "GET", "/tools", "")), &list); err != nil {
		e.t.Fatal(err)
	}
	var all []string
	for _, one := range list.Tools {
		all = append(all, one.Server+"/"+one.Name)
	}
	slices.Sort(all)
	for _, of := range []string{"s", "vault"} {
		want := http.StatusForbidden
		if slices.Contains(all, of+"/read") {
			want = http.StatusOK
		}
		if status, _, answer := e.with(key, "POST", "/servers/"+of+"/tools/read", `{}`); status != want && !(want != 200 && status == http.StatusNotFound) {
			e.t.Errorf("shown is %v, and a call of %s/read answers %d %s", all, of, status, answer)
		}
	}
	return strings.Join(all, " ")
}

// TestTenantSetsNeverWidenPlatformPermissions lets administrators of a tenant do everything
// possible with the name of a set to which the platform limits a key.
func TestTenantSetsNeverWidenPlatformPermissions(t *testing.T) {
	e := openTenantAdminFabric(t, true)
	admin := e.keys["red-admin"]
	const wide = `{"include":[{}]}`
	e.must(200, e.key, "PUT", "/sets/gone", `{"include":[{"server":"s","tool":"read"}]}`)
	given := e.newKey(e.key, `{"name":"red/given","tenant":"red","scopes":["tools:read","tools:call:@reads","tools:call:@gone","tools:call:@never"]}`)
	if got := e.mayCall(given.Secret); got != "s/read" {
		t.Fatalf("the key may call %q", got)
	}
	e.must(409, admin, "PUT", "/sets/reads", wide) // its name is taken
	e.must(200, e.key, "DELETE", "/sets/gone", "", "If-Match", "*")
	e.must(200, admin, "PUT", "/sets/gone", wide)  // the platform removed it
	e.must(200, admin, "PUT", "/sets/never", wide) // the platform never had it
	if got := e.mayCall(given.Secret); got != "s/read" {
		t.Errorf("by sets of its tenant the key may call %q", got)
	}
	e.must(200, admin, "PATCH", "/keys/"+given.ID, `{"note":"mine now"}`, "If-Match", "*")
	if got := e.mayCall(given.Secret); got != "s/read" {
		t.Errorf("with another note the key may call %q", got)
	}
	// A set that the platform hides from the tenant also keeps its meaning.
	blue := e.newKey(e.key, `{"name":"blue/given","tenant":"blue","scopes":["tools:read","tools:call:@hidden"]}`)
	e.must(200, e.key, "PUT", "/sets/hidden", `{"include":[{"server":"vault"},{"server":"s","tool":"read"}]}`)
	e.must(200, e.keys["blue-admin"], "PUT", "/sets/hidden", wide)
	if got := e.mayCall(blue.Secret); got != "s/read" {
		t.Errorf("the key of blue may call %q", got)
	}
	// A key created by an administrator of the tenant refers to the tenant's set, regardless of a set
	// of the platform.
	e.must(200, admin, "PUT", "/sets/mine", `{"include":[{"server":"vault","tool":"read"}]}`)
	own := e.newKey(admin, `{"name":"red/own","owner":"red-admin","scopes":["tools:read","tools:call:@mine","tools:call:@reads"]}`)
	e.must(200, e.key, "PUT", "/sets/mine", wide)
	if got := e.mayCall(own.Secret); got != "s/read vault/read" {
		t.Errorf("the key of the tenant may call %q", got)
	}
	e.must(200, e.key, "PATCH", "/keys/"+own.ID, `{"note":"seen"}`, "If-Match", "*")
	if got := e.mayCall(own.Secret); got != "s/read vault/read" {
		t.Errorf("after the platform noted something, the key of the tenant may call %q", got)
	}
	e.must(200, e.key, "PATCH", "/keys/"+own.ID, `{"scopes":["tools:read","tools:call:@reads"]}`, "If-Match", "*")
	if got := e.mayCall(own.Secret); got != "s/read" {
		t.Errorf("with the scopes of the platform it may call %q", got)
	}
}

// TestAdminLimitedToASetCannotChangeIt uses an administrator of a tenant that may only call the
// tools of a set.
func TestAdminLimitedToASetCannotChangeIt(t *testing.T) {
	e := openTenantAdminFabric(t, true)
	e.must(200, e.keys["red-admin"], "PUT", "/sets/reads2", `{"include":[{"server":"s","tool":"read"}]}`)
	for _, limits := range []string{`"scopes":["tools:read","admin:tenant","tools:call:@reads2"]`, `"scopes":["tools:read","admin:tenant","tools:call:s"]`, `"scopes":["tools:read","admin:tenant","tools:call"],"tools":["s/read"]`} {
		limited := e.newKey(e.keys["red-admin"], `{"name":"red/limited`+fmt.Sprint(len(limits))+`","owner":"red-admin",`+limits+`}`)
		e.must(403, limited.Secret, "PUT", "/sets/reads2", `{"include":[{}]}`, "If-Match", "*")
		e.must(403, limited.Secret, "PUT", "/sets/more", `{"include":[{}]}`)
		e.must(403, limited.Secret, "DELETE", "/sets/reads2", "", "If-Match", "*")
	}
	// Access to the platform's set of that name is no access to the tenant's set, so the administrator
	// cannot grant it.
	e.must(200, e.key, "PUT", "/sets/two", `{"include":[{"server":"s","tool":"read"}]}`)
	boss := e.newKey(e.key, `{"name":"red/boss","tenant":"red","scopes":["tools:read","admin:tenant","tools:call:@two"]}`)
	made := e.newKey(boss.Secret, `{"name":"red/made","scopes":["tools:read","tools:call:@two"]}`)
	e.must(200, e.key, "DELETE", "/sets/two", "", "If-Match", "*")
	e.must(200, e.keys["red-admin"], "PUT", "/sets/two", `{"include":[{}]}`)
	for _, key := range []string{boss.Secret, made.Secret} {
		if got := e.mayCall(key); strings.Contains(got, "vault") || strings.Contains(got, "write") && key == made.Secret {
			t.Errorf("it may call %q", got)
		}
	}
	theirs := e.newKey(e.keys["red-root"], `{"name":"red/theirs","owner":"red/boss","scopes":["tools:read","tools:call:@two"]}`)
	if got := e.mayCall(theirs.Secret); !strings.Contains(got, "vault/read") {
		t.Errorf("a key of the tenant may call %q", got)
	}
	e.must(403, boss.Secret, "POST", "/keys/"+theirs.ID+"/rotate", `{}`, "If-Match", "*")
}

func TestTheSetsOfATenantAreCountedErasedExportedAndImported(t *testing.T) {
	e := openTenantAdminFabric(t, false)
	for _, as := range []string{"red-admin", "blue-admin"} {
		e.must(200, e.keys[as], "PUT", "/sets/inner", `{"include":[{"tool":"read"}]}`)
		e.must(200, e.keys[as], "PUT", "/sets/outer", `{"include":[{"set":"inner"},{"set":"reads"}]}`)
	}
	if got := e.listTenants(e.keys["red-admin"]); len(got) != 1 || fmt.Sprint(got[0].Sets) != "[all inner outer reads]" {
		t.Errorf("%+v", got)
	}
	if got := e.listTenants(e.key); fmt.Sprint(got[0].Sets) != "[all reads]" {
		t.Errorf("%+v", got)
	}
	_, h, file := e.with(e.key, "GET", "/state", "")
	for _, part := range []string{`"sets":[]`, `"tenant_sets":[{"tenant":"blue","set":{"name":"inner"`, `{"tenant":"red","set":{"name":"outer"`} {
		if !strings.Contains(file, part) {
			t.Errorf("the state has no %s: %s", part, file)
		}
	}
	e.must(403, e.keys["red-admin"], "GET", "/state", "")
	if c := e.importState(file, "?dry_run=true", 200); len(c.Changes) != 0 || c.ETag != h.Get("Etag") {
		t.Errorf("the state itself: %+v", c)
	}
	// Tenants with keys in the configuration cannot be erased. The key of green is created at run time.
	e.must(201, e.key, "POST", "/keys", `{"name":"green/boss","tenant":"green","role":"tenant-admin"}`)
	green := e.newKey(e.key, `{"name":"green/more","tenant":"green","role":"tenant-admin"}`)
	e.must(200, green.Secret, "PUT", "/sets/inner", `{"include":[{}]}`)
	if got := e.must(200, e.key, "DELETE", "/tenants/gren?confirm=gren", ""); !strings.Contains(got, `"found":false`) {
		t.Errorf("a tenant that was never there: %s", got)
	}
	if got := e.must(200, e.key, "DELETE", "/tenants/green?confirm=green", ""); !strings.Contains(got, `"found":true`) || !strings.Contains(got, `"sets":1`) || !strings.Contains(got, `"keys":2`) {
		t.Error(got)
	}
	polltest.Within(t, 30*time.Second, "the set of the erased tenant is gone", func() bool {
		_, err := e.in.Catalog().Sets().Owned("green", "inner")
		return schema.KindOf(err) == schema.KindNotFound
	})
	if got := e.must(200, e.key, "DELETE", "/tenants/green?confirm=green", ""); !strings.Contains(got, `"found":true`) || !strings.Contains(got, `"sets":0`) {
		t.Error(got)
	}
	// Sets that red removed or changed are restored from the file. Those of blue are unchanged.
	for _, set := range []string{"outer", "inner"} {
		e.must(200, e.keys["red-admin"], "DELETE", "/sets/"+set, "", "If-Match", "*")
	}
	e.must(200, e.keys["red-admin"], "PUT", "/sets/extra", `{"include":[{}]}`)
	const want = "tenant_sets red/extra remove\ntenant_sets red/inner add\ntenant_sets red/outer add\n"
	dry := e.importState(file, "?dry_run=true", 200)
	if dry.told() != want {
		t.Errorf("it would change\n%s", dry.told())
	}
	if done := e.importState(file, "", 200, "If-Match", dry.ETag); done.Failed != 0 || strings.ReplaceAll(done.told(), " done", "") != want {
		t.Errorf("it changed\n%s%+v", done.told(), done)
	}
	if got := e.must(200, e.keys["red-dev"], "GET", "/sets/outer", ""); !strings.Contains(got, "vault__read") || !strings.Contains(got, `"tenant":"red"`) {
		t.Error(got)
	}
	// Importing a file of a version without tenant sets changes none of them.
	var old map[string]any
	if err := json.Unmarshal([]byte(file), &old); err != nil {
		t.Fatal(err)
	}
	delete(old, "tenant_sets")
	text, err := json.Marshal(old)
	if err != nil {
		t.Fatal(err)
	}
	if c := e.importState(string(text), "?dry_run=true", 200); len(c.Changes) != 0 {
		t.Errorf("a former file would change\n%s", c.told())
	}
	for _, tenant := range []string{"default", "", "no tenant"} {
		e.must(400, e.key, "PUT", "/state?dry_run=true", `{"format":"callyard-state/1","tenant_sets":[{"tenant":"`+tenant+`","set":{"name":"x","include":[{}]}}]}`)
	}
}

// TestSameScopesResolveToEachTenantsOwnSets runs without the section tenants: the view of
// a key is cached, and the keys differ only in their tenant.
func TestSameScopesResolveToEachTenantsOwnSets(t *testing.T) {
	e := openTenantAdminFabric(t, false)
	for tenant, tool := range map[string]string{"red": "read", "blue": "write"} {
		e.must(200, e.keys[tenant+"-admin"], "PUT", "/sets/mine", `{"include":[{"tool":"`+tool+`"}]}`)
	}
	scopes := `"scopes":["tools:read","tools:call:@mine"]}`
	keys := map[string]string{
		"s/read vault/read":   e.newKey(e.keys["red-admin"], `{"name":"red/k","owner":"red-admin",`+scopes).Secret,
		"s/write vault/write": e.newKey(e.keys["blue-admin"], `{"name":"blue/k","owner":"blue-admin",`+scopes).Secret,
		"":                    e.newKey(e.key, `{"name":"k",`+scopes).Secret,
	}
	for range 2 {
		for want, key := range keys {
			if got := e.mayCall(key); got != want {
				t.Errorf("the key may call %q, want %q", got, want)
			}
		}
	}
	for want, key := range keys {
		if got := e.asked(key, "mine", 7); want != "" && !strings.Contains(got, strings.ReplaceAll(strings.Fields(want)[0], "/", "__")) || want == "" && strings.Contains(got, "__") {
			t.Errorf("%q is listed %s", want, got)
		}
	}
}
