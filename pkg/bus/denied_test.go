package bus_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/callyard/callyard/pkg/bus"
)

// TestAStreamThatNATSDeniesIsAnErrorAtOnce has NATS with the permissions of an earlier version, which do
// not have a new stream and a new table. NATS answers such requests with nothing.
func TestAStreamThatNATSDeniesIsAnErrorAtOnce(t *testing.T) {
	s := startGatedServer(t, server.Options{JetStream: true, StoreDir: t.TempDir(), Users: []*server.User{{
		Username: "frontdoor", Password: "x",
		Permissions: &server.Permissions{Publish: &server.SubjectPermission{Deny: []string{"$JS.API.STREAM.INFO.callyard_data_keys", "$JS.API.STREAM.INFO.KV_callyard_sets", "$JS.API.CONSUMER.CREATE.KV_callyard_pins.>"}}},
	}, {Username: "operator", Password: "x"}}})
	log := new(said)
	connect := func(user string, provision bool) *bus.Conn {
		t.Helper()
		c, err := bus.Connect(t.Context(), bus.Options{Name: "test", URL: s.ClientURL(), User: user, Password: "x", Provision: provision, Log: slog.New(slog.NewTextHandler(log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		return c
	}
	if _, err := bus.OpenBucket(t.Context(), connect("operator", true), bus.TableSpec{Bucket: "callyard_pins", What: "pins"}); err != nil {
		t.Fatal(err)
	}
	// A command that creates streams must not be told to run itself.
	_, err := bus.OpenBucket(context.WithoutCancel(t.Context()), connect("frontdoor", true), bus.TableSpec{Bucket: "callyard_sets", What: "sets of tools"})
	if err == nil || !strings.Contains(err.Error(), "such as operator") || strings.Contains(err.Error(), "callyard init") || !strings.Contains(err.Error(), "$JS.API.STREAM.INFO.KV_callyard_sets") {
		t.Errorf("as another user than the operator: %v", err)
	}
	c := connect("frontdoor", false)
	// There is no deadline: the test ends because the error comes without one.
	_, ofStream := bus.OpenStream(context.WithoutCancel(t.Context()), c, bus.StreamSpec{Name: bus.StreamDataKeys, What: "data keys of tenants", Subjects: []string{"x.*"}})
	_, ofTable := bus.OpenBucket(context.WithoutCancel(t.Context()), c, bus.TableSpec{Bucket: "callyard_sets", What: "sets of tools"})
	for of, err := range map[string]error{"data keys of tenants": ofStream, "sets of tools": ofTable} {
		if err == nil || !strings.Contains(err.Error(), of) || !strings.Contains(err.Error(), "permissions.conf") || !strings.Contains(err.Error(), "$JS.API.STREAM.INFO.") {
			t.Errorf("%s: %v", of, err)
		}
	}
	pins, err := bus.OpenBucket(t.Context(), c, bus.TableSpec{Bucket: "callyard_pins", What: "pins"})
	if err != nil {
		t.Fatalf("one that is allowed: %v", err)
	}
	if _, err := pins.Watch(t.Context(), func(string, uint64, bool) {}); err == nil || !strings.Contains(err.Error(), "permissions.conf") {
		t.Errorf("a watch: %v", err)
	}
	log.mu.Lock()
	defer log.mu.Unlock()
	if !strings.Contains(log.b.String(), "fix=\"NATS denies this process the subject") {
		t.Errorf("the log: %s", log.b.String())
	}
}

// TestAProcessWithTheUserOfAnotherRoleFailsAtOnce has an approver that signs in as a front door, which may
// use other inboxes.
func TestAProcessWithTheUserOfAnotherRoleFailsAtOnce(t *testing.T) {
	s := startGatedServer(t, server.Options{JetStream: true, StoreDir: t.TempDir(), Users: []*server.User{{
		Username: "frontdoor", Password: "x", Permissions: &server.Permissions{Subscribe: &server.SubjectPermission{Allow: []string{"_INBOX.frontdoor.>"}}},
	}}})
	c, err := bus.Connect(t.Context(), bus.Options{Name: "test", Role: "approver", URL: s.ClientURL(), User: "frontdoor", Password: "x", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, err = bus.OpenBucket(context.WithoutCancel(t.Context()), c, bus.TableSpec{Bucket: "callyard_sets", What: "sets of tools"})
	if err == nil || !strings.Contains(err.Error(), "has the permissions of its role") {
		t.Error(err)
	}
}

// lines sends each line of a log.
type lines chan string

func (l lines) Write(p []byte) (int, error) { l <- string(p); return len(p), nil }

// TestAWorkerThatMayNotReceiveCallsIsNotReady has a worker that signs in with the user of another role.
// Otherwise a rolling update would replace all workers by such ones.
func TestAWorkerThatMayNotReceiveCallsIsNotReady(t *testing.T) {
	s := startGatedServer(t, server.Options{Users: []*server.User{{
		Username: "approver", Password: "x", Permissions: &server.Permissions{Subscribe: &server.SubjectPermission{Deny: []string{"callyard.v1.serve.*"}}},
	}}})
	log := make(lines, 10)
	c, err := bus.Connect(t.Context(), bus.Options{Name: "test", URL: s.ClientURL(), User: "approver", Password: "x", Log: slog.New(slog.NewTextHandler(log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	l, err := c.Listen("w1", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := c.Ready(); err != nil {
		t.Errorf("without a server: %v", err)
	}
	if err := l.Offer("demo"); err != nil {
		t.Fatal(err)
	}
	t.Log(<-log)
	if err := c.Ready(); err == nil || !strings.Contains(err.Error(), "callyard.v1.serve.*") {
		t.Errorf("with a server: %v", err)
	}
}
