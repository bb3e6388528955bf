package dispatch

import (
	"fmt"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/callyard/callyard/pkg/schema"
)

// quietTenantLatency returns the 99th percentile of the durations of the calls of tenant quiet, while tenant
// flood has times as many calls, of as many times the principals.
func quietTenantLatency(t *testing.T, times int, o Options) (worst time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoute(o)
		r.set("w", nil, 32, true)
		flood, c := newCallQueue(r, 2*time.Millisecond), newCallQueue(r, 2*time.Millisecond)
		for range 40 {
			for p := range times {
				flood.queue(&schema.Call{Principal: schema.Principal{Name: fmt.Sprintf("f%d", p), Tenant: "flood"}}, 20)
			}
			c.queue(&schema.Call{Principal: schema.Principal{Name: "q", Tenant: "quiet"}}, 20)
			time.Sleep(10 * time.Millisecond)
		}
		flood.wg.Wait()
		c.wg.Wait()
		worst = p99(c.waits["q"])
	})
	return worst
}

func equal(schema.TenantID) int { return 1 }

// TestATenantAtTenTimesTheLoadDelaysNoOther has one tenant send ten times the calls of another,
// with ten times as many principals.
func TestATenantAtTenTimesTheLoadDelaysNoOther(t *testing.T) {
	like := quietTenantLatency(t, 1, Options{TenantWeight: equal})
	if worst := quietTenantLatency(t, 10, Options{TenantWeight: equal}); worst > like*3/2 {
		t.Errorf("p99 is %s next to ten times the load, and %s next to the same", worst, like)
	}
	// The limit is meaningful only if it is exceeded by far without tenants.
	if worst := quietTenantLatency(t, 10, Options{}); worst < 3*like {
		t.Errorf("without tenants p99 is %s: the test proves nothing", worst)
	}
}

func TestTenantSharesDependOnWeightsNotPrincipalCount(t *testing.T) {
	weights := map[schema.TenantID]int{"one": 1, "three": 3}
	o := Options{TenantWeight: func(id schema.TenantID) int { return weights[id] }, Weight: func(p string) int { return map[string]int{"b": 2}[p] }}
	for _, inBulk := range []bool{false, true} {
		var calls []*schema.Call
		for _, p := range []schema.Principal{{Name: "a", Tenant: "three"}, {Name: "b", Tenant: "one"}, {Name: "c", Tenant: "one"}, {Name: "d", Tenant: "one"}, {Name: "e", Tenant: "one"}} {
			calls = append(calls, &schema.Call{Principal: p, Bulk: inBulk})
		}
		n := sharesOf(t, o, calls...)
		rest := n["b"] + n["c"] + n["d"] + n["e"]
		if got := float64(n["a"]) / float64(rest); got < 2.7 || got > 3.3 {
			t.Errorf("bulk %t: three to one is %.2f", inBulk, got)
		}
		ratio(t, "the heavier principal of the tenant", float64(n["b"])/float64(n["c"]), 2)
	}
}

// TestAQuietTenantIsAdmittedToAFullQueue has another tenant fill the queue.
func TestAQuietTenantIsAdmittedToAFullQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoute(Options{MaxQueue: 100, MaxWait: time.Hour, TenantWeight: equal})
		r.set("w", nil, 1, true)
		c := newCallQueue(r, time.Millisecond)
		for p := range 50 {
			c.queue(&schema.Call{Principal: schema.Principal{Name: fmt.Sprint(p), Tenant: "flood"}}, 5)
		}
		r.mu.Lock()
		flood := r.mayWaitLocked(&schema.Call{Principal: schema.Principal{Name: "0", Tenant: "flood"}}, nil, true)
		other := r.mayWaitLocked(&schema.Call{Principal: schema.Principal{Name: "q", Tenant: "quiet"}}, nil, true)
		r.mu.Unlock()
		if flood == nil || other != nil {
			t.Errorf("flood: %v; quiet: %v", flood, other)
		}
		c.wg.Wait()
	})
}

func TestCallsThatWaitAreCountedByTenant(t *testing.T) {
	for _, apart := range []bool{true, false} {
		o := Options{MaxQueue: 100, MaxWait: time.Hour}
		want := map[schema.TenantID]int{"": 8}
		if apart {
			o.TenantWeight, want = equal, map[schema.TenantID]int{"": 3, "red": 5}
		}
		r := newRoute(o)
		for i, who := range []schema.Principal{{Name: "a", Tenant: "red"}, {Name: "b", Tenant: "red"}, {Name: "a", Tenant: schema.DefaultTenant}} {
			for n := range 3 {
				if i == 1 && n == 2 {
					break
				}
				r.waiting.push(&schema.Call{Principal: who, Bulk: n == 1}, new(waiter), o.weights())
			}
		}
		got := map[schema.TenantID]int{}
		r.countTenants(got)
		if !maps.Equal(got, want) {
			t.Errorf("apart %t: %v", apart, got)
		}
	}
}
