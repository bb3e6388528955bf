package credential_test

import (
	"log/slog"
	"testing"

	"github.com/callyard/callyard/internal/credential"
	"github.com/callyard/callyard/internal/store/credentialtable"
	"github.com/callyard/callyard/internal/tenants/datakey"
	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/schema"
)

// TestCredentialBackupIsUnreadableAfterTenantErasure restores the bytes of a row, like a backup. The
// operator's key is known.
func TestCredentialBackupIsUnreadableAfterTenantErasure(t *testing.T) {
	s := bustest.Start(t)
	c := s.Connect(t, "approver")
	keys, err := credential.NewKeys()
	if err != nil {
		t.Fatal(err)
	}
	open := func() (*datakey.Ring, *credential.Book) {
		ring, err := datakey.Open(t.Context(), c, keys, false, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(ring.Close)
		b, err := credential.Open(t.Context(), c, keys, ring, []*credential.Server{{ID: "jira", URL: "https://jira.example/mcp", Header: "X-Api-Key"}}, "https://callyard.example", slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(b.Close)
		return ring, b
	}
	ring, b := open()
	rows, err := credentialtable.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	person := func(tenant schema.TenantID) string {
		return credential.Person(&schema.Principal{Owner: "ada", Tenant: tenant})
	}
	copies := map[string][]byte{}
	for _, tenant := range []schema.TenantID{"red", "blue"} {
		if err := b.SetSecret(t.Context(), "jira", person(tenant), "canary-"+string(tenant)); err != nil {
			t.Fatal(err)
		}
		key := credentialtable.Key(tenant, "jira", person(tenant))
		row, _, err := rows.Fresh(t.Context(), key)
		if err != nil || !datakey.Sealed(row) {
			t.Fatalf("%x, %v", row, err)
		}
		copies[key] = row
	}
	if _, err := credentialtable.RemoveTenant(t.Context(), c, "red"); err != nil {
		t.Fatal(err)
	}
	if err := ring.Destroy(t.Context(), "red"); err != nil {
		t.Fatal(err)
	}
	for key, row := range copies {
		if _, err := rows.Put(t.Context(), key, row); err != nil {
			t.Fatal(err)
		}
	}
	_, later := open()
	for _, b := range []*credential.Book{b, later} {
		if got, err := b.Get(t.Context(), "jira", person("red"), 0); schema.KindOf(err) != schema.KindConnectRequired {
			t.Errorf("a copy is read: %v, %v", got, err)
		}
		if got, err := b.Get(t.Context(), "jira", person("blue"), 0); err != nil || got.Value != "canary-blue" {
			t.Errorf("of another tenant: %v, %v", got, err)
		}
	}
	// A process without the data keys must not treat the row as absent.
	plain, err := credential.Open(t.Context(), c, keys, (*datakey.Ring)(nil), []*credential.Server{b.Server("jira")}, "https://callyard.example", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(plain.Close)
	if _, err := plain.Get(t.Context(), "jira", person("blue"), 0); schema.KindOf(err) != schema.KindUnavailable {
		t.Errorf("without encryption.key_file: %v", err)
	}
}
