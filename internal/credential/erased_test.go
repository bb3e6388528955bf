package credential

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/store/credentialtable"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

func personOf(tenant schema.TenantID, name string) string {
	return Person(&schema.Principal{Name: "key", Owner: name, Tenant: tenant})
}

// connection returns a connection to the NATS server of the world.
func (w *testServers) connection(t *testing.T) *bus.Conn {
	t.Helper()
	c, err := bus.Connect(t.Context(), bus.Options{Name: "test", URL: w.nats.URL, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestPersonNameContainsItsTenant(t *testing.T) {
	for _, p := range []schema.Principal{
		{Name: "ada"}, {Name: "ada", Owner: "ada"}, {Name: "ada", Tenant: schema.DefaultTenant}, {Name: "ada", Tenant: "red"}, {Name: "ada", Owner: "team", Tenant: "owner"}, {Name: "x", Tenant: "name"},
	} {
		if got := tenantOf(Person(&p)); !got.Is(p.Tenant) {
			t.Errorf("%+v: of tenant %q", p, got)
		}
	}
}

func TestTheRowsOfATenantAreRemovedAndNoOthers(t *testing.T) {
	w := newTestServers(t)
	b := w.book(t, nil)
	red, blue, platform, wild := personOf("red", "ada"), personOf("blue", "ada"), personOf("", "ada"), personOf("re", "ada")
	all := []string{red, blue, platform, wild}
	for _, who := range all {
		w.connect(t, b, who)
		if err := b.SetSecret(t.Context(), "jira", who, "canary "+who[:2]); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Disconnect(t.Context(), "jira", red); err != nil { // its tombstone is not a row
		t.Fatal(err)
	}
	c := w.connection(t)
	if n, err := credentialtable.RemoveTenant(t.Context(), c, "red"); err != nil || n != 1 {
		t.Errorf("%d rows were removed, %v", n, err)
	}
	if n, err := credentialtable.RemoveTenant(t.Context(), c, "red"); err != nil || n != 0 {
		t.Errorf("%d rows were removed again, %v", n, err)
	}
	rows, err := b.rows.All(t.Context())
	if err != nil || len(rows) != 6 {
		t.Errorf("%d rows are left, %v", len(rows), err)
	}
	for key := range rows {
		if strings.HasPrefix(key, bus.Token(schema.TenantID("red"))+".") {
			t.Errorf("a row is left: %s", key)
		}
	}
	_, err = w.book(t, nil).Get(t.Context(), "crm", red, 0)
	required(t, "after the erasure", err)
	for _, who := range all[1:] {
		if _, err := b.Get(t.Context(), "crm", who, 0); err != nil {
			t.Errorf("%q: %v", who, err)
		}
	}
}

// TestRowsOfFormerVersionsGetATenantOnFirstUse uses rows whose keys do not contain the
// tenant.
func TestRowsOfFormerVersionsGetATenantOnFirstUse(t *testing.T) {
	w := newTestServers(t)
	b, other := w.book(t, nil), w.book(t, nil)
	red := personOf("red", "ada")
	s := b.Server("jira")
	sealed, err := b.keys.seal([]byte(`{"value":"canary"}`), b.place(s, red))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.rows.Put(t.Context(), credentialtable.FormerKey("jira", red), sealed); err != nil {
		t.Fatal(err)
	}
	for _, b := range []*Book{b, other} {
		if c, err := b.Get(t.Context(), "jira", red, 0); err != nil || c.Value != "canary" {
			t.Errorf("%v, %v", c, err)
		}
	}
	if n, err := credentialtable.RemoveTenant(t.Context(), w.connection(t), "red"); err != nil || n != 1 {
		t.Errorf("%d rows were removed, %v", n, err)
	}
	if rows, err := b.rows.All(t.Context()); err != nil || len(rows) != 0 {
		t.Errorf("%d rows are left, %v", len(rows), err)
	}
}
