package ledger

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/credential"
	"github.com/callyard/callyard/internal/tenants/datakey"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/schema"
)

// openSealed is two ledgers that seal, as two processes have them.
func openSealed(t *testing.T) (a, b *Ledger, nats *bustest.Server, destroy func(schema.TenantID)) {
	t.Helper()
	var ring *datakey.Ring
	told := make(chan schema.TenantID, 8)
	nats = bustest.Start(t)
	keys, err := credential.NewKeys()
	if err != nil {
		t.Fatal(err)
	}
	open := func() *Ledger {
		conn, err := bus.Connect(t.Context(), bus.Options{Name: "test", URL: nats.URL, Provision: true, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(conn.Close)
		if ring, err = datakey.Open(t.Context(), conn, keys, true, slog.New(slog.DiscardHandler)); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(ring.Close)
		l, err := Open(t.Context(), conn, Options{DataKeys: ring, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(l.Close)
		ring.OnDestroyed(func(tenant schema.TenantID) { told <- tenant })
		return l
	}
	// destroy waits until both processes have dropped the key.
	destroy = func(tenant schema.TenantID) {
		t.Helper()
		if err := ring.Destroy(t.Context(), tenant); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			<-told
		}
	}
	return open(), open(), nats, destroy
}

func TestLedgerIsEncryptedAndUnreadableAfterTenantErasure(t *testing.T) {
	l, other, nats, destroy := openSealed(t)
	small, large := []byte(`{"text":"canary"}`), bytes.Repeat([]byte("canary-"), 1<<20)
	hold := func(tenant schema.TenantID, args []byte) *Approval {
		t.Helper()
		a := &Approval{CallID: schema.NewCallID(), Expires: time.Now().Add(time.Hour), Binding: Binding{Tenant: tenant, Server: "s", Tool: "t", Requester: Requester{Name: "ann"}}}
		if _, err := l.Create(t.Context(), a, args); err != nil {
			t.Fatal(err)
		}
		return a
	}
	red, blue, apart := hold("red", small), hold("blue", small), hold("red", large)
	for _, a := range []*Approval{red, blue} {
		sum, err := other.PutEdited(t.Context(), a.Binding.Tenant, a.ID, []byte(`"canary edited"`))
		if err != nil {
			t.Fatal(err)
		}
		steps := []func(*Approval) error{
			func(a *Approval) error {
				a.Edited = &Edited{By: "bob", ArgumentsDigest: sum, Size: 15, Reason: "canary"}
				a.Decisions = append(a.Decisions, Decision{By: "bob", Kind: Approve, Reason: "canary"})
				a.State = Approved
				return nil
			},
			func(a *Approval) error { a.State, a.Runner = Running, &Runner{FrontDoor: "f"}; return nil },
		}
		for _, f := range steps {
			if _, err := other.Change(t.Context(), a.Binding.Tenant, a.ID, f); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := other.End(t.Context(), a.Binding.Tenant, a.ID, small, func(a *Approval) error {
			a.State, a.Error = Failed, schema.Errorf(schema.KindServerFailed, "canary")
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	// look reads everything of an approval, as the process that did not end it.
	look := func(a *Approval) (seen *Approval, asked, edited, result []byte, err error) {
		t.Helper()
		if seen, _, err = l.Get(t.Context(), schema.OnlyTenant(a.Binding.Tenant), a.ID); err != nil {
			t.Fatal(err)
		}
		if asked, err = l.Asked(t.Context(), a.Binding.Tenant, a.ID); err != nil {
			return seen, nil, nil, nil, err
		}
		if seen.Edited != nil {
			if edited, err = l.ArgumentsOf(t.Context(), seen); err != nil {
				return seen, nil, nil, nil, err
			}
			result, err = l.Result(t.Context(), seen)
		}
		return seen, asked, edited, result, err
	}
	whole := func(what string, a *Approval) {
		t.Helper()
		seen, asked, edited, result, err := look(a)
		if err != nil || !bytes.Equal(asked, small) || string(edited) != `"canary edited"` || !bytes.Equal(result, small) ||
			seen.Decisions[0].Reason != "canary" || seen.Edited.Reason != "canary" || seen.Error.Detail != "canary" || seen.Private != nil {
			t.Errorf("%s: %q, %q, %q, %+v, %v", what, asked, edited, result, seen, err)
		}
	}
	whole("red", red)
	whole("blue", blue)
	if _, asked, _, _, err := look(apart); err != nil || !bytes.Equal(asked, large) {
		t.Errorf("large arguments: %d bytes, %v", len(asked), err)
	}
	if found := nats.Holds(t, []byte("canary"), []byte("Y2FuYXJ5")); len(found) > 0 {
		t.Errorf("readable: %s", strings.Join(found, ", "))
	}
	destroy("red")
	for _, a := range []*Approval{red, apart} {
		if seen, asked, edited, result, err := look(a); schema.KindOf(err) != schema.KindNotFound || seen.Error != nil {
			t.Errorf("of the deleted tenant: %.20q, %q, %q, %+v, %v", asked, edited, result, seen, err)
		}
	}
	whole("another tenant", blue)
	for _, a := range other.Where(schema.OnlyTenant("red"), func(*Approval) bool { return true }) {
		if a.Error != nil || len(a.Decisions) > 0 && a.Decisions[0].Reason != "" {
			t.Errorf("still in memory: %+v", a)
		}
	}
}
