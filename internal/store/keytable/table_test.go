package keytable

import (
	"errors"
	"testing"

	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/schema"
)

func TestAKeyOfAnotherTenantDoesNotExist(t *testing.T) {
	ctx := t.Context()
	keys, err := Open(ctx, bustest.Start(t).Connect(t, "test"))
	if err != nil {
		t.Fatal(err)
	}
	defer keys.Close()
	revisions := map[string]uint64{}
	for id, tenant := range map[string]schema.TenantID{"red": "red", "none": ""} {
		if revisions[id], err = keys.Create(ctx, Key{ID: id, Name: id, Tenant: tenant}); err != nil {
			t.Fatal(err)
		}
		if err := keys.PutUse(ctx, tenant.OrDefault(), Use{ID: id, Minute: 7}); err != nil {
			t.Fatal(err)
		}
	}
	// Each asks for what is there of another tenant, and the last one for what is not there.
	for _, by := range []struct {
		tenant schema.TenantID
		id     string
	}{{"blue", "red"}, {"", "red"}, {"red", "none"}, {"red", "never"}} {
		_, _, known := keys.Get(schema.OnlyTenant(by.tenant), by.id)
		_, fresh := keys.Fresh(ctx, schema.OnlyTenant(by.tenant), by.id)
		_, replaced := keys.Replace(ctx, by.tenant, Key{ID: by.id, Tenant: by.tenant}, revisions[by.id])
		_, removed := keys.Remove(ctx, by.tenant, by.id, revisions[by.id])
		put := keys.PutUse(ctx, by.tenant, Use{ID: by.id, Minute: 9})
		if known || !errors.Is(fresh, bus.ErrNotFound) || !errors.Is(replaced, bus.ErrConflict) || !errors.Is(removed, bus.ErrConflict) || !errors.Is(put, bus.ErrNotFound) || keys.LastUse(by.tenant, by.id).Minute != 0 {
			t.Errorf("%q asks for %s: %t, %v, %v, %v, %v", by.tenant, by.id, known, fresh, replaced, removed, put)
		}
	}
	if _, err := keys.Replace(ctx, "red", Key{ID: "red", Tenant: "blue"}, revisions["red"]); !errors.Is(err, bus.ErrConflict) {
		t.Errorf("a key was given to another tenant: %v", err)
	}
	for of, want := range map[schema.Tenants]int{{}: 0, schema.OnlyTenant("red"): 1, schema.OnlyTenant(""): 1, schema.AllTenants(): 2} {
		if n := len(keys.All(of)); n != want {
			t.Errorf("%v: %d keys, not %d", of, n, want)
		}
	}
	for id, tenant := range map[string]schema.TenantID{"red": "red", "none": schema.DefaultTenant} {
		if keys.LastUse(tenant, id).Minute != 7 {
			t.Errorf("the own last use of %s is gone", id)
		}
		if left, err := keys.Remove(ctx, tenant, id, revisions[id]); left != nil || err != nil {
			t.Errorf("the own key %s: %v, %v", id, left, err)
		}
	}
}
