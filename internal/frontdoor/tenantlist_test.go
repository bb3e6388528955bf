package frontdoor_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/callyard/callyard/internal/authn"
	"github.com/callyard/callyard/internal/authn/scope"
	"github.com/callyard/callyard/internal/frontdoor"
	"github.com/callyard/callyard/internal/kit/polltest"
	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/internal/tenants"
	"github.com/callyard/callyard/internal/toolset"
	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

// toldTenant is a tenant as the API returns it.
type toldTenant struct {
	ID      string
	Servers struct {
		Patterns []string
		Seen     int
	}
	Sets   []string
	Policy struct {
		Own   bool
		Rules int
	}
	Limits    struct{ Weight, Nominal, Borrow int }
	Receivers struct {
		Hosts         []string
		SlackChannels int `json:"slack_channels"`
	}
	Keys, Held int
	Waiting    *int
	Usage      *struct{ Calls, Failed, Denied, Held int }
}

// listTenants sends GET /tenants.
func (d *door) listTenants(key string) []toldTenant {
	d.t.Helper()
	status, _, body := d.with(key, "GET", "/tenants", "")
	var list struct{ Tenants []toldTenant }
	if err := json.Unmarshal([]byte(body), &list); err != nil || status != http.StatusOK {
		d.t.Fatalf("%d %s", status, body)
	}
	return list.Tenants
}

// openTenants opens a front door with two configured tenants, and keys of every kind.
func openTenants(t *testing.T) (d *door, keys map[string]string) {
	srv := bustest.Start(t)
	t.Cleanup(startCountingWorker(t, srv, "vault").let)
	rules := func(text string) *risk.Policy {
		p, err := risk.Parse([]byte(text), "policy")
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	holder := risk.NewHolder(nil)
	holder.ReplaceAll(rules("rules: [{name: held, match: {tool: write}, approval: {by: caller}}]"), map[schema.TenantID]*risk.Policy{
		"red": rules("rules: [{name: one, match: {tool: fail}, deny: No.}, {name: two, match: {server: none}, level: 1}]"),
	})
	o := frontdoor.Options{Policy: holder, Told: tenants.Destinations{Hosts: []string{"platform.example.com"}, SlackChannels: 2}, Tenants: tenants.New(settings.Tenants{
		"red":  {Servers: []string{"s", "va*"}, Limits: settings.TenantLimits{Weight: 3, Nominal: 5, Borrow: 2}, Notify: settings.TenantNotify{URLs: []string{"https://user:hidden@red.example.com/hidden?hidden=1"}}},
		"blue": {Servers: []string{"s"}},
	})}
	o.Config.Sets = []toolset.Set{{Name: "reds", Include: []toolset.Selector{{Server: "vault", Tool: "read"}}}, {Name: "all", Include: []toolset.Selector{{Server: "s", Tool: "read"}}}}
	keys = make(map[string]string)
	for _, k := range []authn.Key{{Name: "platform auditor", Role: scope.Auditor}, {Name: "home admin", Role: scope.TenantAdmin}, {Name: "red", Tenant: "red"}, {Name: "red admin", Tenant: "red", Role: scope.TenantAdmin}, {Name: "red auditor", Tenant: "red", Role: scope.Auditor}, {Name: "red developer", Tenant: "red", Role: scope.Developer}, {Name: "blue admin", Tenant: "blue", Role: scope.TenantAdmin}} {
		keys[k.Name], k.Hash = authn.Generate()
		o.Config.Keys = append(o.Config.Keys, k)
	}
	d = openDoor(t, srv, o)
	changes, done := d.in.Catalog().Changes()
	defer done()
	for {
		if _, err := d.in.Catalog().Tool("vault", "read"); err == nil {
			return d, keys
		}
		<-changes
	}
}

func TestTenantsAreListedWithWhatTheySeeAndUse(t *testing.T) {
	d, keys := openTenants(t)
	d.newKey(keys["red"], `{"name":"red/nightly","scopes":["tools:read"]}`)
	for _, c := range []struct {
		key, path string
		status    int
	}{{keys["red"], "/servers/vault/tools/read", 200}, {keys["red"], "/servers/s/tools/fail", 403}, {keys["red"], "/servers/vault/tools/write", 202}, {d.key, "/servers/s/tools/read", 200}} {
		if status, _, answer := d.with(c.key, "POST", c.path, "{}"); status != c.status {
			t.Fatalf("%s: %d %s", c.path, status, answer)
		}
	}
	var all []toldTenant
	polltest.Within(t, 30*time.Second, "usage of the calls, and the held one", func() bool {
		all = d.listTenants(d.key)
		return len(all) == 3 && all[2].Usage != nil && all[2].Usage.Calls == 3 && all[0].Usage.Calls == 1 && all[2].Held == 1
	})
	want := []toldTenant{{ID: "default"}, {ID: "blue"}, {ID: "red"}}
	for i := range want {
		w := &want[i]
		w.Servers.Seen, w.Sets, w.Limits.Weight, w.Waiting, w.Receivers.Hosts = 2, []string{"all", "reds"}, 1, new(0), []string{}
		w.Usage = all[i].Usage
	}
	want[0].Receivers.Hosts, want[0].Receivers.SlackChannels = []string{"platform.example.com"}, 2
	want[1].Servers.Patterns, want[1].Servers.Seen, want[1].Sets = []string{"s"}, 1, []string{"all"}
	red := &want[2]
	red.Servers.Patterns, red.Limits.Weight, red.Limits.Nominal, red.Limits.Borrow, red.Keys, red.Held, red.Receivers.Hosts = []string{"s", "va*"}, 3, 5, 2, 1, 1, []string{"red.example.com"}
	red.Policy.Own, red.Policy.Rules = true, 2
	if diff := cmp.Diff(want, all); diff != "" {
		t.Error(diff)
	}
	if u := all[2].Usage; u.Denied != 1 || u.Held != 1 || u.Failed != 0 || all[1].Usage.Calls != 0 {
		t.Errorf("%+v", u)
	}
	_, _, one := d.do("GET", "/tenants/red", "")
	var told toldTenant
	if err := json.Unmarshal([]byte(one), &told); err != nil || cmp.Diff(all[2], told) != "" || strings.Contains(one, "hidden") {
		t.Errorf("%v: %s", err, one)
	}
}

func TestOnlyTheDefaultTenantSeesOtherTenants(t *testing.T) {
	d, keys := openTenants(t)
	for name, want := range map[string][]string{
		"platform auditor": {"default", "blue", "red"}, "home admin": {"default"}, "red": {"red"}, "red admin": {"red"}, "red auditor": {"red"}, "blue admin": {"blue"},
	} {
		var got []string
		for _, one := range d.listTenants(keys[name]) {
			got = append(got, one.ID)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s sees %v", name, got)
		}
		for _, id := range []string{"default", "blue", "red", "green"} {
			status, _, answer := d.with(keys[name], "GET", "/tenants/"+id, "")
			if seen := status == http.StatusOK; seen != slices.Contains(want, id) || !seen && (status != http.StatusNotFound || !strings.Contains(answer, `"detail":"There is no tenant with this id`)) {
				t.Errorf("%s asks for %s: %d %s", name, id, status, answer)
			}
		}
	}
	for _, path := range []string{"/tenants", "/tenants/red"} {
		if status, _, answer := d.with(keys["red developer"], "GET", path, ""); status != http.StatusForbidden {
			t.Errorf("%s: %d %s", path, status, answer)
		}
	}
}

func TestWithoutTenantsSectionOnlyDefaultTenantExists(t *testing.T) {
	srv := bustest.Start(t)
	t.Cleanup(startCountingWorker(t, srv).let)
	key, hash := authn.Generate()
	o := frontdoor.Options{Told: tenants.Destinations{Hosts: []string{"platform.example.com"}}}
	o.Config.Keys = []authn.Key{{Name: "ann", Tenant: "red", Hash: hash}}
	d := openDoor(t, srv, o)
	all := d.listTenants(d.key)
	if len(all) != 1 || all[0].ID != "default" || all[0].Servers.Patterns != nil || all[0].Servers.Seen != 1 || all[0].Waiting != nil || all[0].Policy.Own || !slices.Equal(all[0].Receivers.Hosts, []string{"platform.example.com"}) {
		t.Errorf("%+v", all)
	}
	if status, _, answer := d.do("GET", "/tenants/red", ""); status != http.StatusNotFound {
		t.Errorf("%d %s", status, answer)
	}
	// A caller of another tenant always sees its own tenant.
	if all = d.listTenants(key); len(all) != 1 || all[0].ID != "red" {
		t.Errorf("%+v", all)
	}
}
