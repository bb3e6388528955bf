package sessiontable

import (
	"errors"
	"testing"

	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/schema"
)

func TestSessionOfAnotherTenantIsNotFound(t *testing.T) {
	ctx := t.Context()
	table, err := Open(ctx, bustest.Start(t).Connect(t, "test"), func(string, uint64, bool) {})
	if err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	for key, tenant := range map[string]schema.TenantID{Key("red"): "red", Key("none"): ""} {
		if _, err := table.Put(ctx, tenant, key, Session{Principal: "ann"}); err != nil {
			t.Fatal(err)
		}
		for _, other := range []schema.TenantID{"blue", "red", ""} {
			if other == tenant {
				continue
			}
			if _, _, err := table.Get(ctx, other, key); !errors.Is(err, bus.ErrNotFound) {
				t.Errorf("%q sees a session of %q: %v", other, tenant, err)
			}
			if err := table.End(ctx, other, key); err != nil {
				t.Error(err)
			}
		}
		if s, _, err := table.Get(ctx, tenant.OrDefault(), key); err != nil || s.Principal != "ann" {
			t.Errorf("the session of %q: %+v, %v", tenant, s, err)
		}
		if err := table.End(ctx, tenant, key); err != nil {
			t.Error(err)
		}
		if _, _, err := table.Get(ctx, tenant, key); !errors.Is(err, bus.ErrNotFound) {
			t.Errorf("the session of %q did not end: %v", tenant, err)
		}
	}
}
