package authserver_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/authn/ended"
	"github.com/callyard/callyard/internal/authn/scope"
	"github.com/callyard/callyard/internal/authserver"
	"github.com/callyard/callyard/internal/credential"
	"github.com/callyard/callyard/internal/kit/polltest"
	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/internal/store/oauthtable"
	"github.com/callyard/callyard/internal/tenants/datakey"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

// of runs f with all its requests from a person of a tenant.
func of(tenant schema.TenantID, f func()) {
	was := ada
	ada.Tenant = tenant
	f()
	ada = was
}

// ring returns the data keys of one process.
func (w *installation) ring(keys *credential.Keys) *datakey.Ring {
	w.t.Helper()
	r, err := datakey.Open(w.t.Context(), w.nats.Connect(w.t, "ring"), keys, false, slog.New(slog.DiscardHandler))
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(r.Close)
	return r
}

// rows returns the IDs of the stored grants.
func (w *installation) rows() (rows *bus.Bucket, ids []string) {
	w.t.Helper()
	rows, err := oauthtable.OpenGrants(w.t.Context(), w.nats.Connect(w.t, "approver"))
	if err != nil {
		w.t.Fatal(err)
	}
	all, err := rows.All(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	for id := range all {
		ids = append(ids, id)
	}
	return rows, ids
}

// untilErased waits until a number of grants remains.
func (w *installation) untilErased(left int) {
	w.t.Helper()
	polltest.Until(w.t, fmt.Sprintf("%d grants are left", left), func() bool { _, ids := w.rows(); return len(ids) == left })
}

func TestTheGrantsOfAnErasedTenantAreGone(t *testing.T) {
	for _, encrypted := range []bool{true, false} {
		t.Run(map[bool]string{true: "with data keys", false: "without"}[encrypted], func(t *testing.T) {
			w, s, events := recorded(t)
			if encrypted {
				ring := w.ring(w.keys)
				s.Close()
				s = w.open(func(o *authserver.Options) { o.DataKeys = ring })
			}
			door := ended.Open(t.Context(), w.nats.Connect(t, "frontdoor"), slog.New(slog.DiscardHandler))
			defer door.Close()
			var red, blue tokenResponse
			var unredeemed string
			of("red", func() { red = w.login(s); unredeemed = w.code(s) })
			of("blue", func() { blue = w.login(s) })
			platform := w.login(s)
			tok, err := w.frontDoor(func(i *settings.Issuer) { i.Claims.Tenant = scope.TenantClaim }).Verify(t.Context(), red.Access, resource)
			if err != nil {
				t.Fatal(err)
			}
			rows, before := w.rows()
			events()
			begun := time.Now()
			if err := datakey.Erase(t.Context(), w.nats.Connect(t, "frontdoor"), "red"); err != nil {
				t.Fatal(err)
			}
			heard(t, door, tok.Grant)
			t.Logf("front doors heard of it after %s", time.Since(begun))
			w.untilErased(2)
			if !slices.Contains(before, tok.Grant) {
				t.Fatal("the grant was nowhere")
			}
			if _, _, err := rows.Fresh(t.Context(), tok.Grant); err == nil {
				t.Error("there is still a row")
			}
			if a := post(t, s.ServeToken, renewal(red.Refresh)); a.Error != "invalid_grant" {
				t.Errorf("its refresh token: %+v", a)
			}
			if a := post(t, s.ServeToken, redemption(unredeemed)); a.Error != "invalid_grant" {
				t.Errorf("its code: %+v", a)
			}
			for name, g := range map[string]tokenResponse{"another tenant": blue, "the default tenant": platform} {
				if a := post(t, s.ServeToken, renewal(g.Refresh)); a.Status != http.StatusOK {
					t.Errorf("%s: %+v", name, a)
				}
			}
			if encrypted {
				return // this server records no events
			}
			told := 0
			polltest.Until(t, "the ends are recorded", func() bool { // an end is recorded after its grant is removed
				for _, e := range events() {
					if e.Kind == authserver.Ended && e.Why == authserver.ByErasure {
						told++
					}
				}
				return told >= 2
			})
			if told != 2 {
				t.Errorf("%d ends are recorded", told)
			}
		})
	}
}

// TestGrantOfErasedTenantEndsWithoutARunningApprover runs no approver while the tenant is erased
// and used again.
func TestGrantOfErasedTenantEndsWithoutARunningApprover(t *testing.T) {
	w, first, _ := recorded(t)
	var red tokenResponse
	of("red", func() { red = w.login(first) })
	first.Close()
	if err := datakey.Erase(t.Context(), w.nats.Connect(t, "frontdoor"), "red"); err != nil {
		t.Fatal(err)
	}
	if _, ids := w.rows(); len(ids) != 1 {
		t.Fatalf("%d grants without an approver", len(ids))
	}
	s := w.open(nil)
	w.untilErased(0)
	if a := post(t, s.ServeToken, renewal(red.Refresh)); a.Error != "invalid_grant" {
		t.Errorf("its refresh token: %+v", a)
	}
	// A person of a new tenant with the same name, later.
	w.pass(2 * time.Minute)
	of("red", func() { red = w.login(s) })
	s.Close()
	s = w.open(nil)
	if a := post(t, s.ServeToken, renewal(red.Refresh)); a.Status != http.StatusOK {
		t.Errorf("a grant from after the erasure: %+v", a)
	}
	w.untilErased(1)
}

// TestRestoredGrantOfErasedTenantIsUnreadable restores the bytes of a row, like a backup.
func TestRestoredGrantOfErasedTenantIsUnreadable(t *testing.T) {
	w, plain, _ := recorded(t)
	plain.Close()
	ring := w.ring(w.keys)
	s := w.open(func(o *authserver.Options) { o.DataKeys = ring })
	var red tokenResponse
	of("red", func() { red = w.login(s) })
	rows, ids := w.rows()
	copied, _, err := rows.Fresh(t.Context(), ids[0])
	if err != nil || !datakey.Sealed(copied) {
		t.Fatalf("%x, %v", copied, err)
	}
	if err := ring.Destroy(t.Context(), "red"); err != nil {
		t.Fatal(err)
	}
	w.untilErased(0)
	if _, err := rows.Put(t.Context(), ids[0], copied); err != nil {
		t.Fatal(err)
	}
	if a := post(t, s.ServeToken, renewal(red.Refresh)); a.Error != "invalid_grant" {
		t.Errorf("a copy is worth %+v", a)
	}
	again := w.open(func(o *authserver.Options) { o.DataKeys = w.ring(w.keys) })
	w.untilErased(0)
	if a := post(t, again.ServeToken, renewal(red.Refresh)); a.Error != "invalid_grant" {
		t.Errorf("a copy is worth %+v to a new process", a)
	}
}
