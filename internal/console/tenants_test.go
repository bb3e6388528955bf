package console_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/kit/ui"
)

const (
	homeTenant = `{"id":"default","servers":{"seen":5},"sets":[],"policy":{"own":false,"rules":0},"limits":{"weight":1},"receivers":{"hosts":[],"slack_channels":0},"keys":2,"held":0}`
	redTenant  = `{"id":"red","servers":{"patterns":["ledger","red-*"],"seen":3},"sets":["mine","reds"],"own_sets":["mine"],"policy":{"own":true,"rules":1},"limits":{"weight":7,"nominal":40,"borrow":10},"in_flight":{"calls":52,"borrowed":12,"lent":3},"retention_seconds":129600,"receivers":{"hosts":["hooks.example.com"],"slack_channels":2},"keys":1,"held":4,"waiting":6,` +
		`"usage":{"from":"2026-01-01T00:00:00Z","to":"2026-01-02T00:00:00Z","complete":false,"calls":1234,"failed":30,"tool_errors":1,"denied":5,"expired":1,"unknown":1,"held":9,"unfinished":4}}`
)

func openTenantsConsole(t *testing.T) (*testConsole, *door) {
	t.Helper()
	d := openDoor(t, map[string]string{"GET /tenants": `{"tenants":[` + homeTenant + `,` + redTenant + `]}`, "GET /tenants/red": redTenant, "GET /tenants/default": homeTenant,
		"GET /sets": `{"sets":[{"name":"mine","tenant":"default","origin":"api","definition":{"include":[]}},{"name":"reds","tenant":"default","origin":"api","definition":{"include":[]}}]}`})
	return openDesk(t, d, nil), d
}

func TestTenantsAreListedWithLinksToTheirResources(t *testing.T) {
	k, _ := openTenantsConsole(t)
	p := k.get("/console/tenants")
	p.has(t, `href="/console/tenant?id=default"`, `href="/console/tenant?id=red"`, ">1,234<", ">37<", "Own, 1 rule<", `data-label="In flight now">52</td>`, `data-label="Retention">36h</td>`, "not limited", `href="/console/keys?tenant=red"`, `href="/console/calls?tenant=red"`, "not counted yet", "unknown")
	p = k.get("/console/tenants?q=RE")
	p.has(t, `href="/console/tenant?id=red"`)
	p.hasNot(t, `href="/console/tenant?id=default"`)
	k.get("/console/tenants?q=nobody").has(t, "No tenants match")
	p = k.get("/console/tenant?id=red")
	p.has(t, "red-*", ": 3 of the fleet now", `href="/console/sets?name=reds"`, "<li><p>mine</p></li>", "Its own, with 1 rule, and", "<dt>Weight</dt><dd>7</dd>", "hooks.example.com", "2 channels in Slack", `<span class="figure-value danger">37</span>`, ">6</span>Waiting for a slot now", ">52</span>In flight now: 12 of them borrowed, 3 lent to others", "<dd>36h after the end of a call</dd>",
		`href="/console/usage?by=key&amp;period=24h&amp;tenant=red"`, `href="/console/calls?tenant=red"`, `href="/console/keys?tenant=red"`, `href="/console/audit?tenant=red"`)
	p = k.get("/console/tenant?id=default")
	p.hasNot(t, "In flight now")
	p.has(t, "<dt>Retention</dt><dd>The platform's</dd>", "sees every server", "sees no sets now", "cannot be read now", `>unknown</span></span>Calls`, `<span class="muted">none</span>`)
	if p = k.get("/console/tenant"); p.status != http.StatusSeeOther || p.header.Get("Location") != "/console/tenants" {
		t.Errorf("without an id: %d", p.status)
	}
	if p = k.get("/console/tenant?id=green"); p.status != http.StatusNotFound {
		t.Errorf("an unknown one: %d", p.status)
	}
}

// A tenant that does not see every server gets no data of the whole fabric from the front door.
// The first page and the policy page show the rest.
func TestFabricPagesShowATenantOnlyPermittedData(t *testing.T) {
	const refusal = "This tells of the servers of all tenants."
	d := openDoor(t, map[string]string{
		"GET /servers": `{"servers":[` + okServer + `,` + badServer + `]}`, "GET /front-doors": "!forbidden " + refusal, "GET /configuration": "!forbidden " + refusal, "GET /state": "!forbidden " + refusal,
		"GET /preflight": `{"ready":false,"tools":[{"server":"a","tool":"x","state":"denied","ready":false,"pinned":false,"risk":"medium","decision":"hold","reason":"No one may."}]}`,
	})
	k := openDesk(t, d, nil)
	p := k.get("/console")
	if got := figureOf(t, p, "Servers in trouble"); p.status != http.StatusOK || got != "1" {
		t.Errorf("%d, servers in trouble: %s", p.status, got)
	}
	p.has(t, refusal, "The process ended with status 3.")
	p.hasNot(t, "Calls per second", "Workers", "Figures of the fabric")
	if p = k.get("/console/policy?tools=a%2Fx"); p.status != http.StatusOK {
		t.Errorf("the policy: %d", p.status)
	}
	p.has(t, refusal, "No one may.", "Try a draft")
	p.hasNot(t, "No process reports a policy file")
}

func TestTenantPagesNeedPermission(t *testing.T) {
	k, d := openTenantsConsole(t)
	d.set("GET /tenants", "!forbidden You may not.")
	d.set("GET /tenants/red", "!forbidden You may not.")
	for _, path := range []string{"/console/tenants", "/console/tenant?id=red"} {
		if p := k.get(path); p.status != http.StatusForbidden || strings.Contains(p.body, "ledger") {
			t.Errorf("%s: %d", path, p.status)
		}
	}
	d.require("another")
	if p := k.get("/console/tenant?id=red"); p.status != http.StatusSeeOther || p.header.Get("Location") != "/console/key?next=%2Fconsole%2Ftenant%3Fid%3Dred" {
		t.Errorf("without a key: %d %v", p.status, p.header)
	}
	var here []ui.Link
	for _, l := range k.c.Links("/console/tenants") {
		if l.Current {
			here = append(here, l)
		}
	}
	if len(here) != 1 || here[0].Label != "Tenants" {
		t.Errorf("the navigation: %+v", here)
	}
}

func TestKeysAndCallsAreFilteredByTenant(t *testing.T) {
	const call = `{"calls":[{"id":"call_1","state":"succeeded","server":"s","tool":"t","method":"tools/call","principal":"theirs","arguments_digest":"x","arguments_bytes":1,"created":"2026-11-26T02:00:00Z","front_door":"f"}]}`
	d := openDoor(t, map[string]string{
		"GET /keys":  `{"keys":[{"id":"k1","name":"first","tenant":"red","scopes":[],"origin":"api"},{"id":"k2","name":"second","scopes":[],"origin":"api"},{"id":"k3","name":"third","tenant":"reddish","scopes":[],"origin":"api"}]}`,
		"GET /calls": call,
	})
	k := openDesk(t, d, nil)
	k.key = "door-key"
	p := k.get("/console/keys?tenant=red")
	p.has(t, "first", `name="tenant" value="red"`)
	p.hasNot(t, "second", "third")
	p = k.get("/console/keys?tenant=default")
	p.has(t, "second")
	p.hasNot(t, "first", "third")

	p = k.get("/console/calls?tenant=red&state=failed")
	p.has(t, "theirs", "all callers of the tenant", `href="/console/call?at=2026-11-26T02%3A00%3A00Z&amp;id=call_1"`, `name="tenant" value="red"`)
	if q := d.last("GET /calls").query; !strings.Contains(q, "principal=%2A") || !strings.Contains(q, "tenant=red") || !strings.Contains(q, "state=failed") {
		t.Errorf("asked %s", q)
	}
	// A key that sees only its own calls gets those, and a notice.
	d.set("GET /calls", "!forbidden You can list only your own calls.")
	d.set("GET /calls?tenant=red&limit=50", call)
	p = k.get("/console/calls?tenant=red")
	p.has(t, "It does not see those of other callers", `href="/console/call?id=call_1"`)
	if p = k.get("/console/calls?tenant=blue"); p.status != http.StatusForbidden {
		t.Errorf("%d", p.status)
	}
	if q := d.last("GET /calls").query; strings.Contains(q, "principal") {
		t.Errorf("asked %s", q)
	}
}
