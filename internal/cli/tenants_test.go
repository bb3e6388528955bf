package cli

import (
	"bytes"
	"net/http"
	"strings"
	"testing"

	callyard "github.com/callyard/callyard/clients/go"
)

const (
	homeTenant = `{"id":"default","servers":{"seen":5},"sets":["all","reds"],"policy":{"own":false,"rules":0},"limits":{"weight":1},"receivers":{"hosts":[],"slack_channels":0},"keys":2,"held":0}`
	redTenant  = `{"id":"red","servers":{"patterns":["ledger","red-*"],"seen":3},"sets":["reds\u001b[2J"],"policy":{"own":true,"rules":2},"limits":{"weight":3,"nominal":40,"borrow":10},"in_flight":{"calls":52,"borrowed":10,"lent":0},"retention_seconds":129600,"receivers":{"hosts":["hooks.example.com","x\u001b[2J.example.com"],"slack_channels":2},"keys":1,"held":4,"waiting":0,` +
		`"usage":{"from":"2026-01-01T00:00:00Z","to":"2026-01-02T00:00:00Z","complete":false,"calls":120,"failed":7,"tool_errors":1,"denied":5,"expired":0,"unknown":0,"held":9,"unfinished":4}}`
)

func tenantsDoor(t *testing.T) {
	t.Helper()
	plainEnvironment(t)
	d := openDoor(t, map[string]answer{
		"GET /tenants": jsonAnswer(`{"tenants":[` + homeTenant + `,` + redTenant + `]}`), "GET /tenants/red": jsonAnswer(redTenant), "GET /tenants/default": jsonAnswer(homeTenant),
		"GET /tenants/green": problemAnswer(http.StatusNotFound, `{"type":"/problems/not-found","title":"Not found","status":404,"detail":"There is no tenant with this id.","error":"","retryable":false}`),
	})
	t.Setenv("CALLYARD_URL", d.URL)
}

func TestTenantsAreListedForPeopleAndForPrograms(t *testing.T) {
	tenantsDoor(t)
	out, note, code := typed(t, "", "tenants")
	want := `
TENANT   SERVERS  CALLS 24H  FAILED  DENIED  HELD NOW  WAITING  IN FLIGHT  KEYS  SETS  RULES  WEIGHT  RETENTION  RECEIVERS
default  5        -          -       -       0         -        -          2     2     -      1       -
red      3        120        7       5       4         0        52         1     1     2      3       36h        hooks.example.com, x\x1b[2J.example.com, 2 channels in Slack
`
	if code != exitOK || note != "" || out != strings.TrimPrefix(want, "\n") {
		t.Errorf("%d %s\n%s", code, note, out)
	}
	if out, _, code = typed(t, "", "tenants", "--json"); code != exitOK || out != `{"tenants":[`+homeTenant+`,`+redTenant+`]}`+"\n" {
		t.Errorf("%d %s", code, out)
	}
	if out, _, code = typed(t, "", "tenants", "--output", "yaml"); code != exitOK || !strings.Contains(out, "- ledger") {
		t.Errorf("%d %s", code, out)
	}
}

func TestATenantIsShown(t *testing.T) {
	tenantsDoor(t)
	out, note, code := typed(t, "", "tenants", "show", "red")
	want := `
tenant           red
servers          ledger red-*
sees now         3 servers
sets             reds\x1b[2J
policy           that of the platform, and its own (rules: 2)
weight           3
receivers        hooks.example.com, x\x1b[2J.example.com, 2 channels in Slack
API keys         1 made at run time
held now         4
calls in flight  40 of its own, 10 borrowed at most
in flight now    52, 10 of them borrowed; 0 lent to others
retention        36h after the end of a call
waiting          0
calls 24h        120: 7 failed, 5 denied, 0 expired, 0 unknown, 4 not ended; 1 tool error, 9 held
`
	if code != exitOK || !strings.Contains(note, "not counted yet") || out != strings.TrimPrefix(want, "\n") {
		t.Errorf("%d %s\n%s", code, note, out)
	}
	out, note, code = typed(t, "", "tenants", "show", "default")
	if code != exitOK || note != "" || !strings.Contains(out, "servers    all\n") || !strings.Contains(out, "usage cannot be read now") || strings.Contains(out, "waiting") || strings.Contains(out, "receivers") {
		t.Errorf("%d %s\n%s", code, note, out)
	}
	if out, _, code = typed(t, "", "tenants", "show", "red", "--json"); code != exitOK || out != redTenant+"\n" {
		t.Errorf("%d %s", code, out)
	}
	if _, note, code = typed(t, "", "tenants", "show", "green"); code != exitRefused || !strings.Contains(note, "no tenant") {
		t.Errorf("%d %s", code, note)
	}
	for _, bad := range [][]string{{"red"}, {"show"}, {"show", "a", "b"}} {
		if _, note, code = typed(t, "", append([]string{"tenants"}, bad...)...); code != exitUsage {
			t.Errorf("%v: %d %s", bad, code, note)
		}
	}
}

func TestTenantsFitNarrowTerminals(t *testing.T) {
	d := openDoor(t, map[string]answer{"GET /tenants": jsonAnswer(`{"tenants":[` + homeTenant + `,` + redTenant + `]}`)})
	for _, width := range []int{120, 80, 40} {
		var b bytes.Buffer
		c := clientOf(t, d, &b, &b)
		c.out.width = width
		if err := listTenants(t.Context(), c, nil); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(b.String(), "default") || !strings.Contains(b.String(), "hooks") {
			t.Errorf("%d columns:\n%s", width, b.String())
		}
		for line := range strings.Lines(b.String()) {
			if n := columnsOf(strings.TrimSuffix(line, "\n")); n > width {
				t.Errorf("a line of %d columns on a terminal of %d:\n%s", n, width, b.String())
			}
		}
	}
}

func TestErasingAnUnknownTenantIsRefused(t *testing.T) {
	plainEnvironment(t)
	const none = `{"id":"rad","found":false,"keys":0,"held":0,"canceled":0,"batches":0,"sets":0,"permissions":0,"credentials":0,"encrypted":true}`
	d := openDoor(t, map[string]answer{
		"DELETE /tenants/rad?confirm=rad": jsonAnswer(none),
		"DELETE /tenants/red?confirm=red": jsonAnswer(strings.NewReplacer("rad", "red", "false", "true").Replace(none)),
	})
	t.Setenv("CALLYARD_URL", d.URL)
	if out, note, code := typed(t, "", "tenants", "erase", "rad", "--confirm", "rad"); code != exitRefused || out != "" || !strings.Contains(note, "no data of a tenant rad") {
		t.Errorf("code %d, %q, %q", code, out, note)
	}
	if out, _, code := typed(t, "", "tenants", "erase", "rad", "--confirm", "rad", "--json"); code != exitRefused || out != none+"\n" {
		t.Errorf("code %d, %q", code, out)
	}
	if out, _, code := typed(t, "", "tenants", "erase", "red", "--confirm", "red"); code != exitOK || !strings.Contains(out, "was erased") {
		t.Errorf("code %d, %q", code, out)
	}
}

func TestTenantErasureReportsCounts(t *testing.T) {
	for want, done := range map[string]callyard.TenantErasure{
		"The tenant red was erased: 1 API key revoked, 1 held call withdrawn, 1 durable call canceled, 1 batch deleted, 1 set of tools, 1 standing permission and 1 credential at MCP servers removed.\n":         {ID: "red", Keys: 1, Held: 1, Canceled: 1, Batches: 1, Sets: 1, Permissions: 1, Credentials: 1},
		"The tenant red was erased: 2 API keys revoked, 0 held calls withdrawn, 3 durable calls canceled, 4 batches deleted, 5 sets of tools, 0 standing permissions and 6 credentials at MCP servers removed.\n": {ID: "red", Keys: 2, Canceled: 3, Batches: 4, Sets: 5, Credentials: 6},
	} {
		if got := erasedText(&done); !strings.HasPrefix(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
