package bus_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"log/slog"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/bus/porttest"
)

// gate admits clients while it is open, and reports each one that it rejects.
type gate struct {
	open    atomic.Bool
	refused chan struct{}
}

func (g *gate) Check(server.ClientAuthentication) bool {
	if g.open.Load() {
		return true
	}
	g.refused <- struct{}{}
	return false
}

func startGatedServer(t *testing.T, o server.Options) *server.Server {
	t.Helper()
	o.Host, o.Port, o.NoSigs, o.NoLog = "127.0.0.1", porttest.Port(t), true, true
	s, err := server.NewServer(&o)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(10 * time.Second) {
		t.Fatal("embedded NATS is not ready")
	}
	return s
}

// said collects the log of a connection.
type said struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func TestConnectionSurvivesTemporarilyRefusedCredential(t *testing.T) {
	g := &gate{refused: make(chan struct{}, 64)}
	g.open.Store(true)
	s := startGatedServer(t, server.Options{CustomClientAuthentication: g})
	var log said
	c, err := bus.Connect(t.Context(), bus.Options{URL: s.ClientURL(), Name: "w", Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	back := make(chan struct{})
	defer c.OnReconnect(func() { close(back) })()
	cl := client(t, c)
	if !cl.Settled() {
		t.Error("a connection that was never lost is not settled")
	}

	g.open.Store(false)
	clients, err := s.Connz(nil)
	if err != nil || len(clients.Conns) != 1 {
		t.Fatalf("%+v, %v", clients, err)
	}
	if err := s.DisconnectClientByID(clients.Conns[0].Cid); err != nil {
		t.Fatal(err)
	}
	for range 4 { // by default nats.go gives up after the second
		<-g.refused
	}
	if err := c.Ready(); err == nil || !strings.Contains(err.Error(), "refuses the credential") {
		t.Errorf("while it is refused it is ready: %v", err)
	}
	if cl.Settled() { // a look at this moment would give up the calls of workers that reconnect later
		t.Error("it is settled before it has reconnected")
	}
	g.open.Store(true)
	<-back
	if err := c.Ready(); err != nil {
		t.Error(err)
	}
	if text := log.String(); strings.Count(text, "NATS reported an error") != 1 || !strings.Contains(text, "correct nats.user and nats.password") {
		t.Errorf("it logged\n%s", text)
	}
}

func TestConnectErrorsNameTheSettingToCorrect(t *testing.T) {
	web := httptest.NewTLSServer(nil)
	defer web.Close()
	secret := startGatedServer(t, server.Options{Username: "a", Password: "b"})
	encrypted := startGatedServer(t, server.Options{TLS: true, TLSConfig: &tls.Config{Certificates: web.TLS.Certificates, MinVersion: tls.VersionTLS12}})
	mutual := startGatedServer(t, server.Options{TLS: true, TLSVerify: true, TLSConfig: &tls.Config{Certificates: web.TLS.Certificates, ClientAuth: tls.RequireAnyClientCert, MinVersion: tls.VersionTLS12}})
	small := startGatedServer(t, server.Options{MaxPayload: 64<<10 - 1})
	for name, c := range map[string]struct {
		o    bus.Options
		want string
	}{
		"a wrong password":           {bus.Options{URL: secret.ClientURL(), User: "a", Password: "c"}, "correct nats.user and nats.password"},
		"no password":                {bus.Options{URL: secret.ClientURL()}, "correct nats.user and nats.password"},
		"an unknown authority":       {bus.Options{URL: encrypted.ClientURL()}, "check nats.ca_file"},
		"a server without TLS":       {bus.Options{URL: secret.ClientURL(), TLS: &tls.Config{MinVersion: tls.VersionTLS12}}, "check nats.ca_file"},
		"no certificate of a client": {bus.Options{URL: mutual.ClientURL(), TLS: &tls.Config{InsecureSkipVerify: true}}, "nats.cert_file"},
		"small messages":             {bus.Options{URL: small.ClientURL()}, "raise max_payload"},
		"nobody":                     {bus.Options{URL: "nats://127.0.0.1:1"}, "start a server there"},
	} {
		c.o.Log = slog.New(slog.DiscardHandler)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		_, err := bus.Connect(ctx, c.o)
		cancel()
		if err == nil || !strings.Contains(err.Error(), c.want) || c.want != "start a server there" && strings.Contains(err.Error(), "start a server") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestMissingJetStreamErrorSuggestsTheFix(t *testing.T) {
	bare := startGatedServer(t, server.Options{})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	c, err := bus.Connect(ctx, bus.Options{URL: bare.ClientURL(), Provision: true, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := bus.OpenBucket(ctx, c, bus.TableSpec{Bucket: "t", What: "things"}); err == nil || !strings.Contains(err.Error(), "start the NATS server with -js") || !strings.Contains(err.Error(), "things") {
		t.Error(err)
	}
	if _, err := bus.OpenStream(ctx, c, bus.StreamSpec{Name: "s", What: "things", Subjects: []string{"s"}}); err == nil || !strings.Contains(err.Error(), "start the NATS server with -js") {
		t.Error(err)
	}
}
