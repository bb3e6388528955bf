package catalog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/dispatch"
	"github.com/callyard/callyard/internal/toolset"
	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/schema"
)

// openForTwoTenants is open with two tenants: red sees server a, blue sees server b.
func openForTwoTenants(t testing.TB, srv *bustest.Server) *Catalog {
	t.Helper()
	sees := map[schema.TenantID]schema.ServerID{"red": "a", "blue": "b"}
	finding := Finding{
		Sees: func(tenant schema.TenantID, id schema.ServerID) bool {
			return tenant.Is(schema.DefaultTenant) || sees[tenant] == id
		},
		Apart: func(tenant schema.TenantID) bool { return !tenant.Is(schema.DefaultTenant) },
	}
	conn, id, log := srv.Connect(t, "front"), schema.NewID("router"), slog.New(slog.DiscardHandler)
	r, err := dispatch.New(conn, id, dispatch.Options{}, log)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c, err := Open(ctx, conn, r, id, finding, log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		_ = r.Close()
	})
	return c
}

// singleSelectorSet returns a set with a single selector. An empty selector selects all tools.
func singleSelectorSet(name string, s toolset.Selector) toolset.Set {
	return toolset.Set{Name: name, Include: []toolset.Selector{s}}
}

func mustPut(t *testing.T, c *Catalog, tenant schema.TenantID, set toolset.Set) Set {
	t.Helper()
	made, err := c.Sets().Put(t.Context(), tenant, set, 0, "ann")
	if err != nil {
		t.Fatalf("%s/%s: %v", tenant, set.Name, err)
	}
	return made
}

// seenTools returns the tools of a set as the tenant sees it, or the error.
func seenTools(c *Catalog, tenant schema.TenantID, set string) string {
	view, err := TenantsOf(c).Seen(tenant).SetView(set)
	if err != nil {
		return string(schema.KindOf(err))
	}
	var all []string
	for i := range view.Tools {
		all = append(all, view.Tools[i].Name)
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

func seenSets(c *Catalog, tenant schema.TenantID) string {
	var all []string
	for _, set := range TenantsOf(c).Seen(tenant).Sets() {
		all = append(all, string(set.Tenant)+"/"+set.Name)
	}
	return strings.Join(all, " ")
}

func TestTenantSetIsLimitedToItsServersAndPrivate(t *testing.T) {
	srv := bustest.Start(t)
	h := fleetOfTwo(t, srv)
	c, other := openForTwoTenants(t, srv), openForTwoTenants(t, srv)
	h.announceUntil(c, "the tools", knowsBoth(c))
	h.announceUntil(other, "the tools", knowsBoth(other))
	mustPut(t, c, "", singleSelectorSet("everything", toolset.Selector{}))
	mustPut(t, c, "", singleSelectorSet("ofa", toolset.Selector{Server: "a", Tool: "read"}))
	mustPut(t, c, "red", singleSelectorSet("mine", toolset.Selector{}))
	mustPut(t, c, "blue", singleSelectorSet("mine", toolset.Selector{Tool: "delete"}))
	mustPut(t, c, "red", singleSelectorSet("more", toolset.Selector{Set: "mine", Tool: "delete"}))
	mustPut(t, c, "red", singleSelectorSet("shared", toolset.Selector{Set: "ofa"}))
	none := string(schema.KindNotFound)
	check := func(c *Catalog) {
		t.Helper()
		for _, want := range []struct {
			tenant     schema.TenantID
			set, tools string
		}{
			{"red", "mine", "a__delete a__read"}, {"blue", "mine", "b__delete"}, {"", "mine", none}, {"green", "mine", none},
			{"red", "more", "a__delete"}, {"blue", "more", none}, {"red", "shared", "a__read"},
			{"red", "ofa", "a__read"}, {"blue", "ofa", none}, {"red", "everything", none}, {"", "everything", "a__delete a__read b__delete b__read"},
		} {
			if got := seenTools(c, want.tenant, want.set); got != want.tools {
				t.Errorf("%q sees in %s %q, want %q", want.tenant, want.set, got, want.tools)
			}
		}
		for tenant, want := range map[schema.TenantID]string{"red": "red/mine red/more default/ofa red/shared", "blue": "blue/mine", "": "default/everything default/ofa", "green": ""} {
			if got := seenSets(c, tenant); got != want {
				t.Errorf("%q sees the sets %q, want %q", tenant, got, want)
			}
		}
	}
	check(c)
	h.announceUntil(other, "the last set", func() bool { return seenTools(other, "red", "shared") == "a__read" })
	check(other)
	// A set that the tenant does not see cannot be included. The error is that for a missing set.
	var refused []string
	for _, name := range []string{"everything", "mine", "nothing"} {
		_, err := c.Sets().Put(t.Context(), "green", singleSelectorSet("x", toolset.Selector{Set: name}), 0, "")
		if schema.KindOf(err) != schema.KindInvalidRequest {
			t.Errorf("green includes %s: %v", name, err)
		}
		refused = append(refused, strings.ReplaceAll(fmt.Sprint(err), name, "SET"))
	}
	if refused[0] != refused[2] || refused[1] != refused[2] {
		t.Errorf("%q", refused)
	}
	// A set that refers to a removed set has no tools, rather than more than before.
	mustPut(t, c, "red", toolset.Set{Name: "without", Include: []toolset.Selector{{}}, Exclude: []toolset.Selector{{Set: "ofa"}}})
	set, err := c.Sets().Owned("", "ofa")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Sets().Remove(t.Context(), "", "ofa", set.Revision); err != nil {
		t.Errorf("a tenant keeps the installation from removing a set: %v", err)
	}
	if got := seenTools(c, "red", "without"); got != string(schema.KindConflict) || c.Sets().Has("red", "without", "a", "delete") {
		t.Errorf("what excluded the removed set has %q", got)
	}
}

// TestSetNamesResolveByTenant tests two sets with the same name.
func TestSetNamesResolveByTenant(t *testing.T) {
	srv := bustest.Start(t)
	h := fleetOfTwo(t, srv)
	c := openForTwoTenants(t, srv)
	h.announceUntil(c, "the tools", knowsBoth(c))
	inst := mustPut(t, c, "", singleSelectorSet("x", toolset.Selector{Server: "a", Tool: "read"}))
	if _, err := c.Sets().Put(t.Context(), "red", singleSelectorSet("x", toolset.Selector{}), 0, "eve"); schema.KindOf(err) != schema.KindConflict {
		t.Errorf("red takes the name of a set that it sees: %v", err)
	}
	mustPut(t, c, "blue", singleSelectorSet("x", toolset.Selector{})) // blue does not see the installation's set
	mustPut(t, c, "red", singleSelectorSet("later", toolset.Selector{Tool: "read"}))
	mustPut(t, c, "", singleSelectorSet("later", toolset.Selector{Server: "a"}))
	for _, want := range []struct {
		names, server schema.TenantID
		set, tool     string
		has           bool
	}{
		{"", "a", "x", "read", true}, {"", "a", "x", "delete", false}, {"", "b", "x", "read", false},
		{"red", "a", "x", "read", true}, {"red", "a", "x", "delete", false},
		{"blue", "b", "x", "delete", true}, {"blue", "a", "x", "read", false},
		{"red", "a", "later", "read", true}, {"red", "a", "later", "delete", false}, {"", "a", "later", "delete", true},
		{"green", "a", "x", "read", false}, {"red", "a", "none", "read", false},
	} {
		if got := c.Sets().Has(want.names, want.set, schema.ServerID(want.server), want.tool); got != want.has {
			t.Errorf("%q: the set %s has %s/%s: %t", want.names, want.set, want.server, want.tool, got)
		}
	}
	if got := seenTools(c, "red", "later"); got != "a__read" {
		t.Errorf("the own set is not the first: %q", got)
	}
	// A tenant may change its own set after the installation has created one of that name. References
	// in a set of the installation resolve to sets of the installation.
	own, err := c.Sets().Owned("red", "later")
	if err != nil {
		t.Fatal(err)
	}
	if own, err = c.Sets().Put(t.Context(), "red", singleSelectorSet("later", toolset.Selector{Tool: "delete"}), own.Revision, "eve"); err != nil {
		t.Error(err)
	}
	mustPut(t, c, "", singleSelectorSet("outer", toolset.Selector{Set: "later", Tool: "read"}))
	if got := seenTools(c, "red", "outer"); got != "a__read" {
		t.Errorf("the tenant's set changed one of the installation: %q", got)
	}
	// Switches refer to sets of the installation, so the tenant's set of that name can be removed.
	if _, fits, err := c.Switches().Many(t.Context(), "", "", "later", false, "closed", "ann"); err != nil || fits != 2 {
		t.Error(fits, err)
	}
	if err := c.Sets().Remove(t.Context(), "red", "later", own.Revision); err != nil {
		t.Error(err)
	}
	if err := c.Sets().Remove(t.Context(), "red", "x", inst.Revision); schema.KindOf(err) != schema.KindNotFound {
		t.Errorf("red removes a set of the installation: %v", err)
	}
	if _, err := c.Sets().Put(t.Context(), "blue", singleSelectorSet("x", toolset.Selector{}), inst.Revision, "eve"); !errors.Is(err, ErrSetChanged) {
		t.Errorf("blue changes it by its revision: %v", err)
	}
}

// TestEditsOfATenantAtTwoFrontDoorsLoseNothing makes two front doors add selectors repeatedly.
func TestEditsOfATenantAtTwoFrontDoorsLoseNothing(t *testing.T) {
	srv := bustest.Start(t)
	doors := []*Catalog{openForTwoTenants(t, srv), openForTwoTenants(t, srv)}
	mustPut(t, doors[0], "red", singleSelectorSet("s", toolset.Selector{}))
	mustPut(t, doors[1], "blue", singleSelectorSet("s", toolset.Selector{}))
	const each = 10
	var wg sync.WaitGroup
	for n, c := range doors {
		wg.Go(func() {
			for i := range each {
				for {
					set, err := c.Sets().Owned("red", "s")
					if err == nil {
						set.Include = append(slices.Clone(set.Include), toolset.Selector{Tool: fmt.Sprintf("t%d-%d", n, i)})
						_, err = c.Sets().Put(t.Context(), "red", set.Set, set.Revision, "")
					}
					if err == nil {
						break
					}
					if !errors.Is(err, ErrSetChanged) && schema.KindOf(err) != schema.KindNotFound {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	wg.Wait()
	most := 0
	for _, c := range doors { // the last writer knows all
		if set, err := c.Sets().Owned("red", "s"); err == nil {
			most = max(most, len(set.Include))
		}
	}
	if most != 1+2*each {
		t.Errorf("%d selectors of %d", most, 1+2*each)
	}
	if set, err := doors[1].Sets().Owned("blue", "s"); err != nil || len(set.Include) != 1 {
		t.Errorf("the set of blue: %+v, %v", set, err)
	}
}

// TestSetChangesAreReportedToTheirTenantOnly compares the changes that each tenant gets for sets of
// one name.
func TestSetChangesAreReportedToTheirTenantOnly(t *testing.T) {
	srv := bustest.Start(t)
	h := fleetOfTwo(t, srv)
	c := openForTwoTenants(t, srv)
	h.announceUntil(c, "the tools", knowsBoth(c))
	follower := c.Follow()
	made := mustPut(t, c, "red", singleSelectorSet("x", toolset.Selector{Server: "a"}))
	told := func() map[string]string {
		by := make(map[string]string)
		for _, change := range follower.Next() {
			for _, tenant := range []schema.TenantID{"default", "red", "blue"} {
				if TenantsOf(c).Seen(tenant).Changed(&change) {
					by[string(tenant)] += string(change.Type) + " " + string(change.Tenant) + "/" + change.Set + " "
				}
			}
		}
		return by
	}
	expect := func(want map[string]string) {
		t.Helper()
		if got := told(); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("told is %v, want %v", got, want)
		}
	}
	expect(map[string]string{"red": "set.added red/x "})
	mustPut(t, c, "", singleSelectorSet("x", toolset.Selector{})) // visible only to the default tenant
	expect(map[string]string{"default": "set.added default/x "})
	if err := c.Sets().Remove(t.Context(), "red", "x", made.Revision); err != nil {
		t.Fatal(err)
	}
	expect(map[string]string{"red": "set.removed red/x "})
}

func TestATenantHasABoundedNumberOfSets(t *testing.T) {
	srv := bustest.Start(t)
	c := openForTwoTenants(t, srv)
	for i := range maxTenantSets {
		mustPut(t, c, "red", singleSelectorSet(fmt.Sprintf("s%d", i), toolset.Selector{}))
	}
	if _, err := c.Sets().Put(t.Context(), "red", singleSelectorSet("more", toolset.Selector{}), 0, ""); schema.KindOf(err) != schema.KindConflict {
		t.Error(err)
	}
	mustPut(t, c, "blue", singleSelectorSet("more", toolset.Selector{}))
	big := toolset.Set{Name: "big", Include: slices.Repeat([]toolset.Selector{{Tool: strings.Repeat("x", 250)}}, 256), Exclude: slices.Repeat([]toolset.Selector{{Tool: strings.Repeat("x", 250)}}, 256)}
	for i, want := range []schema.Kind{"", schema.KindConflict} { // each takes more than half; a replaced definition does not count
		big.Name = fmt.Sprintf("big%d", i)
		made, err := c.Sets().Put(t.Context(), "blue", big, 0, "")
		if schema.KindOf(err) != want && !(want == "" && err == nil) {
			t.Errorf("%s: %v", big.Name, err)
		}
		if err == nil {
			if _, err := c.Sets().Put(t.Context(), "blue", made.Set, made.Revision, ""); err != nil {
				t.Errorf("changed: %v", err)
			}
			mustPut(t, c, "", big)
		}
	}
}
