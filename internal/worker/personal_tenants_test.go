package worker_test

import (
	"sync"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/credential"
	"github.com/callyard/callyard/internal/dispatch"
	"github.com/callyard/callyard/internal/store/credentialtable"
	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/schema"
)

// samePersonIn returns a principal with the same name and owner in each tenant.
func samePersonIn(tenant schema.TenantID) schema.Principal {
	return schema.Principal{Name: "ann", Owner: "ann@x", Tenant: tenant}
}

// accountOf calls as ann of a tenant, and returns the account that the server saw.
func accountOf(t *testing.T, r *dispatch.Router, tenant schema.TenantID) (string, error) {
	t.Helper()
	res, err := r.Do(t.Context(), &schema.Call{ID: schema.NewCallID(), Server: "accounts", Tool: "whoami", Arguments: []byte(`{}`), Timeout: 20 * time.Second, Principal: samePersonIn(tenant)})
	if err != nil {
		return "", err
	}
	return string(res.Body), nil
}

// TestPeopleOfOneNameInTwoTenantsShareNothing has a principal with the same name and owner in three
// tenants, and a thief who can write to NATS.
func TestPeopleOfOneNameInTwoTenantsShareNothing(t *testing.T) {
	srv, mcp := bustest.Start(t), newAccounts(t)
	keys, err := credential.NewKeys()
	if err != nil {
		t.Fatal(err)
	}
	w := start(t, srv, "w", false, userEntry(mcp.URL+"/mcp"))
	defer stop(t, w)
	r, c, book := personalFront(t, srv, keys, mcp.URL+"/mcp")
	await(t, c, "accounts is ready", hasTools(c, "accounts"))
	person := func(tenant schema.TenantID) string { who := samePersonIn(tenant); return credential.Person(&who) }
	set := func(tenant schema.TenantID, key string) {
		t.Helper()
		if err := book.SetSecret(t.Context(), "accounts", person(tenant), key); err != nil {
			t.Fatal(err)
		}
	}
	refused := func(what string, tenant schema.TenantID) {
		t.Helper()
		before := mcp.count()
		if got, err := accountOf(t, r, tenant); schema.KindOf(err) != schema.KindConnectRequired || mcp.count() != before {
			t.Errorf("%s: %s, %v, %d calls", what, got, err, mcp.count()-before)
		}
	}
	mcp.set("canary-red", "red account")
	mcp.set("canary-blue", "blue account")
	mcp.set("canary-shared", "a team account")
	set("red", "canary-red")
	is := func(tenant schema.TenantID, want string) {
		if got, err := accountOf(t, r, tenant); err != nil || got != `{"resultType":"complete","content":[{"type":"text","text":"`+want+`"}]}` {
			t.Errorf("%s: %s, %v", tenant, got, err)
		}
	}
	is("red", "red account")
	refused("the same name in another tenant, whose session is open", "blue")
	refused("the same name in the default tenant", "")

	// A row that the thief copied to the other tenant.
	rows, err := credentialtable.Open(t.Context(), srv.Connect(t, "thief"))
	if err != nil {
		t.Fatal(err)
	}
	stolen, _, err := rows.Fresh(t.Context(), credentialtable.Key("red", "accounts", person("red")))
	if err != nil {
		t.Fatal(err)
	}
	for _, tenant := range []schema.TenantID{"blue", ""} {
		for _, key := range []string{credentialtable.Key(tenant, "accounts", person(tenant)), credentialtable.FormerKey("accounts", person(tenant))} {
			if _, err := rows.Put(t.Context(), key, stolen); err != nil {
				t.Fatal(err)
			}
		}
		refused("with a copied row", tenant)
	}

	set("blue", "canary-blue")
	var calls sync.WaitGroup
	for range 10 {
		calls.Go(func() { is("red", "red account") })
		calls.Go(func() { is("blue", "blue account") })
	}
	calls.Wait()
	// Even if both have the same key, each has its own session, because a server may keep state in it.
	set("red", "canary-shared")
	is("red", "a team account")
	set("blue", "canary-shared")
	is("blue", "a team account")
	mcp.mu.Lock()
	defer mcp.mu.Unlock()
	if n := mcp.opens["canary-shared"]; n != 2 {
		t.Errorf("%d sessions for two tenants with one key", n)
	}
}
