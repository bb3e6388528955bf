package frontdoor_test

import (
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/authn"
	"github.com/callyard/callyard/internal/confirm"
	"github.com/callyard/callyard/internal/confirm/confirmtest"
	"github.com/callyard/callyard/internal/frontdoor"
	"github.com/callyard/callyard/internal/kit/polltest"
	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/internal/tenants"
	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/schema"
)

// TestTenantGetsItsNominalQuotaAtEveryFrontDoor uses two tenants at two front doors: one
// borrows the whole share of the other, which then needs it.
func TestTenantGetsItsNominalQuotaAtEveryFrontDoor(t *testing.T) {
	srv := bustest.Start(t)
	h := startCountingWorker(t, srv)
	defer h.let()
	s := confirmtest.StartRedis(t, "", "")
	red, redHash := authn.Generate()
	blue, blueHash := authn.Generate()
	o := frontdoor.Options{
		Redis:   &confirm.RedisOptions{Addresses: []string{s.Address}},
		Tenants: tenants.New(settings.Tenants{"red": {Servers: []string{"*"}, Limits: settings.TenantLimits{Nominal: 2, Borrow: 2}}, "blue": {Servers: []string{"*"}, Limits: settings.TenantLimits{Nominal: 3}}}),
	}
	o.Config.Keys = []authn.Key{{Name: "ann", Hash: redHash, Tenant: "red"}, {Name: "bob", Hash: blueHash, Tenant: "blue"}}
	a, b := openDoor(t, srv, o), openDoor(t, srv, o)
	slow := func(d *door, key string, ended *atomic.Int64, all *sync.WaitGroup) {
		all.Go(func() {
			status, _, text := d.do("POST", "/servers/s/tools/slow", `{}`, "Authorization", "Bearer "+key)
			if status != http.StatusOK {
				t.Errorf("%d %s", status, text)
			}
			ended.Add(1)
		})
	}
	var all sync.WaitGroup
	var reds, blues atomic.Int64
	for range 4 { // 2 of its own share, and 2 borrowed from blue
		slow(a, red, &reds, &all)
	}
	polltest.Until(t, "four calls run", func() bool { return h.now.Load() == 4 })
	for _, d := range []*door{a, b} { // each front door knows the calls at the other
		polltest.Within(t, 30*time.Second, "the calls that red has borrowed of blue", func() bool {
			_, _, list := d.do("GET", "/tenants", "")
			_, _, metrics := d.do("GET", "/metrics", "")
			return strings.Contains(list, `"in_flight":{"calls":4,"borrowed":2,"lent":0}`) && strings.Contains(list, `"in_flight":{"calls":0,"borrowed":0,"lent":2}`) &&
				strings.Contains(metrics, `callyard_tenant_calls_in_flight{share="borrowed",tenant="red"} 2`) && strings.Contains(metrics, `callyard_tenant_calls_in_flight{share="lent",tenant="blue"} 2`) &&
				strings.Contains(metrics, `callyard_tenant_calls_in_flight{share="own",tenant="red"} 2`)
		})
	}
	if status, header, text := b.do("POST", "/servers/s/tools/read", `{}`, "Authorization", "Bearer "+red); status != http.StatusTooManyRequests || header.Get("Retry-After") == "" || !strings.Contains(text, "limits.borrow") {
		t.Errorf("a fifth call of red: %d %s", status, text)
	}
	if status, _, text := a.do("POST", "/servers/s/tools/read", `{}`); status != http.StatusOK {
		t.Errorf("a tenant without limits: %d %s", status, text)
	}
	ran := h.runs.Load()
	slow(b, blue, &blues, &all) // of its own share, which is not lent
	polltest.Until(t, "five calls run", func() bool { return h.now.Load() == 5 })
	slow(b, blue, &blues, &all) // these wait until red returns the loan
	slow(b, blue, &blues, &all)

	status, header, text := a.do("POST", "/batches", batchOf(3, "write", false), "Authorization", "Bearer "+red)
	if status != http.StatusCreated {
		t.Fatalf("a batch of red: %d %s", status, text)
	}
	if status, _, text := a.do("POST", "/calls", `{"server":"s","tool":"write"}`, "Authorization", "Bearer "+red, "Prefer", "respond-async"); status != http.StatusAccepted {
		t.Errorf("a durable call of red: %d %s", status, text)
	}
	if n := h.runs.Load(); n != ran+1 {
		t.Errorf("%d calls more ran than there were slots for", n-ran-1)
	}
	for i := range int64(2) { // a call ends, and one of blue begins
		h.slow <- struct{}{}
		polltest.Until(t, "the next call runs", func() bool { return h.now.Load() == 5 && h.runs.Load() == ran+2+i })
	}
	if h.most.Load() > 6 { // 5, plus the call of a tenant without limits
		t.Errorf("%d calls at once", h.most.Load())
	}
	h.let()
	all.Wait()
	polltest.Until(t, "the waiting calls run", func() bool {
		_, _, text := a.do("GET", header.Get("Location"), "", "Authorization", "Bearer "+red)
		return strings.Contains(text, `"succeeded":3`) && h.runs.Load() == ran+3+4
	})
}

// A tenant must learn neither when others call a server that they share, nor what the server wrote about
// these calls.
func TestTenantDoesNotSeeTheCallsOfOthersAtASharedServer(t *testing.T) {
	srv := bustest.Start(t)
	h := startCountingWorker(t, srv)
	red, redHash := authn.Generate()
	o := frontdoor.Options{Tenants: tenants.New(settings.Tenants{"red": {Servers: []string{"s", "broken"}}})}
	o.Config.Keys = []authn.Key{{Name: "ann", Hash: redHash, Tenant: "red"}}
	d := openDoor(t, srv, o)
	var all sync.WaitGroup
	defer all.Wait()
	defer h.let()
	all.Go(func() { d.do("POST", "/servers/s/tools/slow", `{}`) })
	conn := srv.Connect(t, "worker")
	const running, wrote = `"in_flight":1`, "the arguments of another tenant"
	polltest.Until(t, "an operator sees the call and the output", func() bool {
		err := conn.Announce(&schema.Worker{ID: "failing", Servers: []schema.Server{{ID: "broken", State: schema.StateError, Error: "It crashed.", StderrTail: wrote, Digest: "d"}}})
		_, _, list := d.do("GET", "/servers", "")
		return err == nil && strings.Contains(list, running) && strings.Contains(list, wrote)
	})
	for _, path := range []string{"/servers", "/servers/s", "/servers/broken"} {
		status, _, text := d.do("GET", path, "", "Authorization", "Bearer "+red)
		if status != http.StatusOK || strings.Contains(text, running) || strings.Contains(text, wrote) {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
}
