package waits

import (
	"sync"
	"testing"

	"github.com/callyard/callyard/pkg/schema"
)

func TestLimitCountsInTotalAndPerPrincipal(t *testing.T) {
	l := New(3, 2)
	take := func(who string) func() {
		t.Helper()
		done, err := l.Take(&schema.Principal{Name: who})
		if err != nil {
			t.Fatalf("%s: %v", who, err)
		}
		return done
	}
	refused := func(who string, kind schema.Kind) {
		t.Helper()
		done, err := l.Take(&schema.Principal{Name: who})
		e := schema.AsError(err)
		if done != nil || e == nil || e.Kind != kind || e.RetryAfter <= 0 || !e.Retryable {
			t.Fatalf("%s: %+v, want a retryable %s with a time to wait", who, e, kind)
		}
	}
	first := take("ada")
	take("ada")
	refused("ada", schema.KindQuota)
	other := take("bob")
	refused("bob", schema.KindUnavailable)
	first()
	take("ada")
	refused("bob", schema.KindUnavailable)
	other()
	take("bob")
	if len(l.of) != 2 || l.total != 3 {
		t.Fatalf("%d wait, of %v", l.total, l.of)
	}
}

func TestALimitIsEmptyAgainOnceAllAreDone(t *testing.T) {
	l := New(50, 40)
	var wg sync.WaitGroup
	for n := range 8 {
		wg.Go(func() {
			for range 1000 {
				if done, err := l.Take(&schema.Principal{Name: []string{"ada", "bob"}[n%2], Tenant: []schema.TenantID{"", "acme"}[n%2]}); err == nil {
					done()
				}
			}
		})
	}
	wg.Wait()
	if l.total != 0 || len(l.of) != 0 || len(l.tenants) != 0 {
		t.Fatalf("%d wait, of %v and %v", l.total, l.of, l.tenants)
	}
}

func TestNoTenantTakesThePlacesOfAll(t *testing.T) {
	l := New(20, 10)
	took := 0
	for n := range 20 {
		done, err := l.Take(&schema.Principal{Name: "acme/" + string(rune('a'+n)), Tenant: "acme"})
		if err != nil {
			if e := schema.AsError(err); e.Kind != schema.KindQuota || e.RetryAfter <= 0 {
				t.Fatal(err)
			}
			break
		}
		took++
		defer done()
	}
	if took != 15 {
		t.Errorf("the principals of one tenant took %d of 20 places", took)
	}
	for _, tenant := range []schema.TenantID{"umbrella", ""} {
		done, err := l.Take(&schema.Principal{Name: "other-" + string(tenant), Tenant: tenant})
		if err != nil {
			t.Fatalf("tenant %q: %v", tenant, err)
		}
		defer done()
	}
}
