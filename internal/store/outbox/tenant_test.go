package outbox

import (
	"errors"
	"testing"
	"time"

	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/schema"
)

func TestDeliveryOfAnotherTenantIsNotFound(t *testing.T) {
	o, err := Open(t.Context(), bustest.Start(t).Connect(t, "test"), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	revisions := map[string]uint64{}
	for id, tenant := range map[string]schema.TenantID{"red": "red", "none": ""} {
		if revisions[id], err = o.Create(ctx, tenant, id, []byte("state"), []byte("body of "+id)); err != nil {
			t.Fatal(err)
		}
	}
	var shown []string
	stop, err := o.Watch(ctx, schema.OnlyTenant("red"), func(id string, _ []byte, _ uint64) { shown = append(shown, id) })
	if err != nil {
		t.Fatal(err)
	}
	stop()
	if len(shown) != 1 || shown[0] != "red" {
		t.Errorf("a watch of red shows %v", shown)
	}
	// Each asks for what is there of another tenant, and then for what is not there.
	for _, by := range []struct {
		tenant schema.TenantID
		id     string
	}{{"blue", "red"}, {"", "red"}, {"red", "none"}, {"red", "never"}} {
		_, _, get := o.Get(ctx, schema.OnlyTenant(by.tenant), by.id)
		_, body := o.Body(ctx, by.tenant, by.id)
		forget := o.Forget(ctx, by.tenant, by.id)
		_, replace := o.Replace(ctx, by.tenant, by.id, []byte("other"), revisions[by.id])
		_, remove := o.Remove(ctx, by.tenant, by.id, revisions[by.id])
		if get == nil || get.Error() != bus.ErrNotFound.Error() || body == nil || body.Error() != bus.ErrNotFound.Error() || !errors.Is(replace, bus.ErrConflict) || !errors.Is(remove, bus.ErrConflict) || !errors.Is(forget, bus.ErrNotFound) {
			t.Errorf("%q asks for %s: %v, %v, %v, %v", by.tenant, by.id, get, body, replace, remove)
		}
	}
	for id, tenant := range map[string]schema.TenantID{"red": "red", "none": schema.DefaultTenant} {
		if b, err := o.Body(ctx, tenant, id); err != nil || string(b) != "body of "+id {
			t.Errorf("the own body: %q, %v", b, err)
		}
		next, err := o.Replace(ctx, tenant, id, []byte("next"), revisions[id])
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := o.Forget(ctx, tenant, id); err != nil {
				t.Error(err)
			}
			if b, err := o.Body(ctx, tenant, id); !errors.Is(err, bus.ErrNotFound) {
				t.Errorf("a body that is forgotten: %q, %v", b, err)
			}
			if state, revision, err := o.Get(ctx, schema.OnlyTenant(tenant), id); err != nil || string(state) != "next" || revision != next {
				t.Errorf("its state: %q, %d, %v", state, revision, err)
			}
		}
		if _, err := o.Remove(ctx, tenant, id, next); err != nil {
			t.Error(err)
		}
	}
}
