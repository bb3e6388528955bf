package authserver_test

import (
	"log/slog"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/nats-io/nats-server/v2/server"

	"github.com/callyard/callyard/internal/authn/ended"
	"github.com/callyard/callyard/internal/authn/token/tokentest"
	"github.com/callyard/callyard/internal/authserver"
	"github.com/callyard/callyard/internal/store/credentialtable"
	"github.com/callyard/callyard/internal/store/endtable"
	"github.com/callyard/callyard/internal/store/oauthtable"
	"github.com/callyard/callyard/internal/tenants/datakey"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/bus/porttest"
)

// withRoles starts a NATS server whose users have exactly the permissions of the roles. connect
// connects as one of them, and provision creates the tables.
func withRoles(t *testing.T) (connect func(role string) *bus.Conn, provision func()) {
	t.Helper()
	users := []*server.User{{Username: "init", Password: "x"}}
	for _, r := range bus.Roles() {
		users = append(users, &server.User{Username: r.Name, Password: "x", Permissions: &server.Permissions{Publish: &server.SubjectPermission{Allow: r.Publish}, Subscribe: &server.SubjectPermission{Allow: r.Subscribe}}})
	}
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: porttest.Port(t), JetStream: true, StoreDir: t.TempDir(), NoSigs: true, NoLog: true, Users: users})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(10 * time.Second) {
		t.Fatal("embedded NATS is not ready")
	}
	connect = func(role string) *bus.Conn {
		c, err := bus.Connect(t.Context(), bus.Options{URL: s.ClientURL(), Name: role, Role: role, User: role, Password: "x", Provision: role == "init", Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		return c
	}
	return connect, func() {
		if err := bus.Provision(t.Context(), connect("init"), datakey.Streams(), slices.Concat(oauthtable.Specs(), endtable.Specs(), credentialtable.Specs())); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRolePermissionsAreSufficient(t *testing.T) {
	connect, provision := withRoles(t)
	// A front door that is updated first has no table yet, and finds it later.
	early := ended.Open(t.Context(), connect(bus.RoleFrontDoor), slog.New(slog.DiscardHandler))
	defer early.Close()
	if early.Has("x") {
		t.Error("something has ended before there is a table")
	}
	provision()
	key := tokentest.NewKey(t, "k1", jose.ES256)
	w, s := newInstallation(t, func(o *authserver.Options) {
		o.Conn = connect(bus.RoleApprover)
		o.Clients = append(o.Clients, authserver.Client{ID: "batch", Redirects: []string{back}, Keys: setOf(t, key)})
	})
	door := ended.Open(t.Context(), connect(bus.RoleFrontDoor), slog.New(slog.DiscardHandler))
	defer door.Close()
	shown := w.asserted(key, "batch", nil, nil)
	if g := post(t, s.ServeToken, with(shown, w.code(s, "client_id", "batch"))); g.Status != http.StatusOK {
		t.Fatalf("%+v", g)
	}
	if g := post(t, s.ServeToken, with(shown, w.code(s, "client_id", "batch"))); g.Error != "invalid_client" {
		t.Errorf("a replay: %+v", g)
	}
	all, err := s.Accesses(t.Context(), everybody)
	if err != nil || len(all) != 2 {
		t.Fatalf("%+v, %v", all, err)
	}
	for _, one := range all {
		if _, err := s.End(t.Context(), one.ID, &ada, authserver.ChannelWeb, everybody); err != nil {
			t.Fatal(err)
		}
		heard(t, door, one.ID)
		heard(t, early, one.ID)
	}
	// A front door erases a tenant, and the approver ends the grants of its people.
	of("red", func() { w.login(s) })
	if all, err = s.Accesses(t.Context(), everybody); err != nil || len(all) != 1 {
		t.Fatalf("%+v, %v", all, err)
	}
	conn := connect(bus.RoleFrontDoor)
	if _, err := credentialtable.RemoveTenant(t.Context(), conn, "red"); err != nil {
		t.Error(err)
	}
	if err := datakey.Erase(t.Context(), conn, "red"); err != nil {
		t.Fatal(err)
	}
	heard(t, door, all[0].ID)
}
