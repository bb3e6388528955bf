package ledger_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/schema"
)

// checkHidden asks with an id of another tenant and with one that was never given, and expects the
// same error, but for the id.
func checkHidden[ID ~string](t *testing.T, what string, foreign, unknown ID, ask func(ID) error) {
	t.Helper()
	is, want := ask(foreign), ask(unknown)
	if is == nil || want == nil || schema.KindOf(is) != schema.KindNotFound || schema.KindOf(want) != schema.KindNotFound ||
		strings.ReplaceAll(is.Error(), string(foreign), string(unknown)) != want.Error() {
		t.Errorf("%s: of another tenant: %v; unknown: %v", what, is, want)
	}
}

func TestAnApprovalOfAnotherTenantIsUnknown(t *testing.T) {
	conn := bustest.Start(t).Connect(t, "test")
	here := open(t, conn, ledger.Options{})
	of := func(tenant schema.TenantID) *ledger.Approval {
		a := question()
		a.Binding.Tenant = tenant
		if _, err := here.Create(t.Context(), a, []byte(`{"n":1}`)); err != nil {
			t.Fatal(err)
		}
		return a
	}
	red, none := of("red"), of("")
	// The second ledger keeps no ended approval in its view: it reads each from NATS.
	far := open(t, conn, ledger.Options{MaxEnded: 1})
	unchanged := func(*ledger.Approval) error { t.Error("somebody else's approval was shown"); return nil }
	ctx, blue := t.Context(), schema.TenantID("blue")
	for name, l := range map[string]*ledger.Ledger{"in the view": here, "elsewhere": far} {
		for what, ask := range map[string]func(schema.TenantID, schema.ApprovalID) error{
			"Get": func(tenant schema.TenantID, id schema.ApprovalID) error {
				_, _, err := l.Get(ctx, schema.OnlyTenant(tenant), id)
				return err
			},
			"Current": func(tenant schema.TenantID, id schema.ApprovalID) error {
				_, err := l.Current(ctx, schema.OnlyTenant(tenant), id)
				return err
			},
			"Check": func(tenant schema.TenantID, id schema.ApprovalID) error {
				_, err := l.Check(ctx, tenant, id, unchanged)
				return err
			},
			"Change": func(tenant schema.TenantID, id schema.ApprovalID) error {
				_, err := l.Change(ctx, tenant, id, unchanged)
				return err
			},
			"End": func(tenant schema.TenantID, id schema.ApprovalID) error {
				_, err := l.End(ctx, tenant, id, []byte("{}"), unchanged)
				return err
			},
			"large End": func(tenant schema.TenantID, id schema.ApprovalID) error {
				_, err := l.End(ctx, tenant, id, noise(300<<10), unchanged)
				return err
			},
			"Arguments": func(tenant schema.TenantID, id schema.ApprovalID) error {
				_, err := l.Arguments(ctx, tenant, id)
				return err
			},
			"Asked": func(tenant schema.TenantID, id schema.ApprovalID) error {
				_, err := l.Asked(ctx, tenant, id)
				return err
			},
			"Definition": func(tenant schema.TenantID, id schema.ApprovalID) error {
				_, err := l.Definition(ctx, tenant, id)
				return err
			},
			"PutEdited": func(tenant schema.TenantID, id schema.ApprovalID) error {
				_, err := l.PutEdited(ctx, tenant, id, []byte("{}"))
				return err
			},
		} {
			unknown := ledger.IDFor(schema.NewCallID())
			checkHidden(t, name+", "+what, red.ID, unknown, func(id schema.ApprovalID) error { return ask(blue, id) })
			checkHidden(t, name+", by the default tenant, "+what, red.ID, unknown, func(id schema.ApprovalID) error { return ask("", id) })
			checkHidden(t, name+", of the default tenant, "+what, none.ID, unknown, func(id schema.ApprovalID) error { return ask("red", id) })
		}
		checkHidden(t, name+", by call", red.CallID, schema.NewCallID(), func(id schema.CallID) error {
			_, _, err := l.ByCall(ctx, schema.OnlyTenant(blue), id)
			return schema.Errorf(schema.KindOf(err), "%s", strings.ReplaceAll(err.Error(), string(ledger.IDFor(id)), string(id)))
		})
		for _, own := range []*ledger.Approval{red, none} {
			if b, err := l.Arguments(ctx, own.Binding.Tenant.OrDefault(), own.ID); err != nil || string(b) != `{"n":1}` {
				t.Errorf("%s, the own arguments: %q, %v", name, b, err)
			}
		}
	}
}

func TestListsAndWatchesShowOneTenant(t *testing.T) {
	l := start(t)
	all := func(*ledger.Approval) bool { return true }
	seen := make(chan schema.TenantID, 10)
	defer l.Watch(schema.OnlyTenant("red"), func(a *ledger.Approval) { seen <- a.Binding.Tenant })()
	defer l.Watch(schema.Tenants{}, func(a *ledger.Approval) { t.Errorf("nobody's watch hears of %s", a.ID) })()
	for _, tenant := range []schema.TenantID{"", "blue", "red"} {
		a := question()
		a.Binding.Tenant = tenant
		defer l.WatchOne(schema.OnlyTenant("red"), ledger.IDFor(a.CallID), func(a *ledger.Approval) { seen <- a.Binding.Tenant })()
		if _, err := l.Create(t.Context(), a, []byte("{}")); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // by Watch and by WatchOne; the approvals of others were stored before
		if got := within(t, "the watch", seen); got != "red" {
			t.Errorf("a watch of red showed one of %q", got)
		}
	}
	for of, want := range map[schema.Tenants]int{{}: 0, schema.OnlyTenant("red"): 1, schema.OnlyTenant(schema.DefaultTenant): 1, schema.OnlyTenant("green"): 0, schema.AllTenants(): 3} {
		page, _ := l.List(of, ledger.Filter{}, ledger.Cursor{})
		visited := 0
		l.Each(of, func(*ledger.Approval) { visited++ })
		if n := []int{len(page), len(l.Where(of, all)), visited, len(pending(l, of))}; n[0] != want || n[1] != want || n[2] != want || n[3] != want {
			t.Errorf("%v: List, Where, Each and EachPending show %d, not %d", of, n, want)
		}
	}
}

func TestAPermissionOfAnotherTenantIsUnknown(t *testing.T) {
	l := start(t)
	ctx, now := t.Context(), time.Now().UTC()
	p := ledger.Permission{ID: "perm_1", Tenant: "red", Given: now, Until: now.Add(time.Hour), MaxUses: 3}
	if made, err := l.Permit(ctx, p); err != nil || !made {
		t.Fatal(made, err)
	}
	deadline, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for len(l.Permissions(schema.OnlyTenant("red"))) == 0 {
		if deadline.Err() != nil {
			t.Fatal("the permission was not seen")
		}
	}
	shown := func(*ledger.Permission) error { t.Error("somebody else's permission was shown"); return nil }
	checkHidden(t, "Use", p.ID, "perm_2", func(id string) error { _, err := l.Use(ctx, "blue", id, shown); return err })
	checkHidden(t, "RevokePermission", p.ID, "perm_2", func(id string) error {
		_, err := l.RevokePermission(ctx, "", id, ledger.Revocation{By: "eve"}, shown)
		return err
	})
	if err := l.ForgetPermission(ctx, "blue", p.ID); err != nil {
		t.Error(err)
	}
	if n := len(l.Permissions(schema.OnlyTenant("blue"))) + len(l.Permissions(schema.Tenants{})); n != 0 {
		t.Errorf("others see %d permissions", n)
	}
	if used, err := l.Use(ctx, "red", p.ID, func(*ledger.Permission) error { return nil }); err != nil || used.Uses != 1 || used.Revoked != nil {
		t.Errorf("the own tenant's use: %+v, %v", used, err)
	}
}

func TestRequesterLimitsArePerTenant(t *testing.T) {
	l := open(t, bustest.Start(t).Connect(t, "test"), ledger.Options{MaxOpen: 4, Log: slog.New(slog.DiscardHandler)})
	for _, tenant := range []schema.TenantID{"red", "blue"} { // one each: a quarter of all
		a := question()
		a.Binding.Tenant = tenant
		if _, err := l.Create(t.Context(), a, []byte("{}")); err != nil {
			t.Errorf("%s: %v", tenant, err)
		}
	}
}

func TestStoredRecordsOfAnotherTenantAreNotFound(t *testing.T) {
	conn := bustest.Start(t).Connect(t, "test")
	l := open(t, conn, ledger.Options{})
	a := question()
	a.Binding.Tenant = "red"
	if _, err := l.Create(t.Context(), a, []byte("{}")); err != nil {
		t.Fatal(err)
	}
	r, err := ledger.OpenRecords(t.Context(), conn, ledger.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Get(t.Context(), schema.OnlyTenant("red"), a.ID, bus.Leader); err != nil {
		t.Error(err)
	}
	if _, err := r.Get(t.Context(), schema.OnlyTenant("blue"), a.ID, bus.Leader); !errors.Is(err, bus.ErrNotFound) {
		t.Error(err)
	}
}
