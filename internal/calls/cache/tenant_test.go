package cache

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/callyard/callyard/internal/tenants/retention"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

func TestResultsAreNotSharedBetweenTenants(t *testing.T) {
	// A principal is in two tenants if its key was moved from one to the other.
	of := func(tenant schema.TenantID, shared bool) key {
		return keyOf(&schema.Call{Server: "s", Tool: "t", Arguments: []byte(`{}`), Principal: schema.Principal{Name: "ann", Tenant: tenant}}, shared)
	}
	for _, shared := range []bool{false, true} {
		if of("red", shared) == of("blue", shared) || of("red", shared) == of("", shared) {
			t.Errorf("shared %t: two tenants have one key", shared)
		}
		if of("", shared) != of(schema.DefaultTenant, shared) {
			t.Errorf("shared %t: the default tenant has two keys", shared)
		}
	}
	if of("red", true) == of("red", false) {
		t.Error("a result of one principal is shared")
	}
}

func TestResultsAreKeptNoLongerThanTheRetentionOfTheirTenant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := Open(Options{Retention: retention.Periods{"red": time.Hour}, Log: slog.New(slog.DiscardHandler)})
		defer c.Close()
		runs := 0
		ask := func(tenant schema.TenantID, fresh bool) *schema.Result {
			t.Helper()
			call := &schema.Call{Server: "s", Tool: "t", Arguments: []byte(`{}`), Fresh: fresh, Principal: schema.Principal{Name: "ann", Tenant: tenant}}
			call.Principal.Name += string(tenant)
			res, err := c.Do(t.Context(), call, risk.Cache{TTL: 24 * time.Hour}, func(context.Context) (*schema.Result, error) {
				runs++
				return &schema.Result{Body: []byte("one")}, nil
			})
			if err != nil {
				t.Fatal(err)
			}
			return res
		}
		for tenant, want := range map[schema.TenantID]time.Duration{"red": time.Hour, "blue": 24 * time.Hour} {
			for _, fresh := range []bool{false, true} {
				if got := ask(tenant, fresh); got.Cache.TTL != want {
					t.Errorf("a result of %s may be used for %s, want %s", tenant, got.Cache.TTL, want)
				}
			}
		}
		runs = 0
		time.Sleep(59 * time.Minute)
		if red, blue := ask("red", false), ask("blue", false); !red.Cache.Hit || !blue.Cache.Hit || red.Cache.TTL != time.Minute {
			t.Errorf("before the retention has ended: %+v, %+v", red.Cache, blue.Cache)
		}
		time.Sleep(time.Minute)
		if red, blue := ask("red", false), ask("blue", false); red.Cache.Hit || !blue.Cache.Hit || runs != 1 {
			t.Errorf("after the retention: %+v, %+v", red.Cache, blue.Cache)
		}
	})
}
