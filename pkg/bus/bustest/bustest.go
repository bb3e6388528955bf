// Package bustest provides tests with a NATS server: an embedded one or, if a test requires it, a
// real nats-server process. It must not be used outside tests.
package bustest

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/bus/porttest"
)

// Server is a NATS server for one test.
type Server struct {
	// URL is the address on loopback.
	URL  string
	s    *server.Server
	dir  string
	port int
}

// Start runs an embedded server with JetStream until the test ends.
func Start(t testing.TB) *Server {
	t.Helper()
	s := &Server{dir: t.TempDir(), port: porttest.Port(t)}
	s.start(t)
	s.URL = s.s.ClientURL()
	t.Cleanup(s.Stop)
	return s
}

func (s *Server) start(t testing.TB) {
	t.Helper()
	var err error
	s.s, err = server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: s.port, JetStream: true, StoreDir: s.dir,
		NoSigs: true, NoLog: true, MaxPayload: 8 << 20,
	})
	if err != nil {
		t.Fatalf("embedded NATS: %v", err)
	}
	s.s.Start()
	if !s.s.ReadyForConnections(time.Minute) {
		t.Fatal("embedded NATS is not ready")
	}
}

// StartPair runs two embedded servers that form a cluster, without JetStream, until the test ends.
// A message that is published on one reaches the subscribers of the other.
func StartPair(t testing.TB) (a, b *Server) {
	t.Helper()
	ports := porttest.Ports(t, 2)
	nodes := make([]*Server, 2)
	for i := range nodes {
		s := &Server{port: porttest.Port(t)}
		var err error
		s.s, err = server.NewServer(&server.Options{
			ServerName: fmt.Sprintf("pair-%d", i), Host: "127.0.0.1", Port: s.port, NoSigs: true, NoLog: true, MaxPayload: 8 << 20,
			Cluster: server.ClusterOpts{Name: "pair", Host: "127.0.0.1", Port: ports[i]},
			Routes:  server.RoutesFromStr(fmt.Sprintf("nats://127.0.0.1:%d", ports[1-i])),
		})
		if err != nil {
			t.Fatalf("embedded NATS: %v", err)
		}
		s.s.Start()
		t.Cleanup(s.Stop)
		if !s.s.ReadyForConnections(time.Minute) {
			t.Fatal("embedded NATS is not ready")
		}
		s.URL = s.s.ClientURL()
		nodes[i] = s
	}
	for deadline := time.Now().Add(time.Minute); nodes[0].s.NumRoutes() == 0 || nodes[1].s.NumRoutes() == 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the two NATS servers did not form a cluster")
		}
	}
	return nodes[0], nodes[1]
}

// Stop stops an embedded server before the test ends. Data that it had not stored is lost. Again
// starts it at the same address with the stored data.
func (s *Server) Stop() {
	s.s.Shutdown()
	s.s.WaitForShutdown()
}

// Again starts an embedded server that was stopped.
func (s *Server) Again(t testing.TB) {
	t.Helper()
	s.start(t)
}

// StartProcess runs a real nats-server process with JetStream and the default message limit of
// 1 MiB until the test ends. It searches the binary in the directory CALLYARD_TEST_BIN, which
// scripts/test.sh fills, and on the PATH.
func StartProcess(t testing.TB) *Server {
	t.Helper()
	bin := filepath.Join(os.Getenv("CALLYARD_TEST_BIN"), "nats-server")
	if _, err := os.Stat(bin); err != nil {
		if bin, err = exec.LookPath("nats-server"); err != nil {
			t.Fatal("no nats-server: run the tests with scripts/test.sh, which builds it, or set CALLYARD_TEST_BIN")
		}
	}
	port := porttest.Port(t)
	cmd := exec.Command(bin, "-js", "-a", "127.0.0.1", "-p", fmt.Sprint(port), "-sd", t.TempDir())
	if err := cmd.Start(); err != nil {
		t.Fatalf("nats-server: %v", err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	s := &Server{URL: fmt.Sprintf("nats://127.0.0.1:%d", port)}
	nc, err := nats.Connect(s.URL, nats.RetryOnFailedConnect(true), nats.MaxReconnects(200), nats.ReconnectWait(50*time.Millisecond))
	if err != nil {
		t.Fatalf("nats-server: %v", err)
	}
	defer nc.Close()
	if err := nc.FlushTimeout(time.Minute); err != nil {
		t.Fatalf("nats-server does not answer: %v", err)
	}
	return s
}

// Lag answers direct reads of a stream like a replica that has not received its messages yet. The leader
// has them.
func (s *Server) Lag(t testing.TB, stream string) {
	t.Helper()
	lagging := "lagging." + stream
	nc, err := nats.Connect(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	_, err = nc.Subscribe(lagging, func(m *nats.Msg) {
		_ = m.RespondMsg(&nats.Msg{Header: nats.Header{"Status": {"404"}}}) // a missing answer fails the test
	})
	if err == nil {
		err = nc.Flush()
	}
	if err == nil {
		err = s.s.GlobalAccount().AddMapping("$JS.API.DIRECT.GET."+stream, lagging)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Freeze leaves a third of the direct reads of a stream unanswered, like a cluster one of whose servers
// is frozen. It returns the number of these reads.
func (s *Server) Freeze(t testing.TB, stream string) (unanswered func() int64) {
	t.Helper()
	nc, err := nats.Connect(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	var n atomic.Int64
	if _, err = nc.Subscribe("frozen."+stream, func(*nats.Msg) { n.Add(1) }); err == nil {
		err = nc.Flush()
	}
	if err == nil {
		err = s.s.GlobalAccount().AddWeightedMappings("$JS.API.DIRECT.GET."+stream, server.NewMapDest("frozen."+stream, 33))
	}
	if err != nil {
		t.Fatal(err)
	}
	return n.Load
}

// Silence leaves all reads of a stream from its leader unanswered. It returns the number of these reads.
func (s *Server) Silence(t testing.TB, stream string) (unanswered func() int64) {
	t.Helper()
	nc, err := nats.Connect(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	var n atomic.Int64
	if _, err = nc.Subscribe("silent."+stream, func(*nats.Msg) { n.Add(1) }); err == nil {
		err = nc.Flush()
	}
	if err == nil {
		err = s.s.GlobalAccount().AddMapping("$JS.API.STREAM.MSG.GET."+stream, "silent."+stream)
	}
	if err != nil {
		t.Fatal(err)
	}
	return n.Load
}

// Streams returns the number of streams of an embedded server.
func (s *Server) Streams(t testing.TB) int {
	t.Helper()
	info, err := s.s.Jsz(nil)
	if err != nil {
		t.Fatalf("embedded NATS: %v", err)
	}
	return info.Streams
}

// Stored returns the number of bytes that the messages in all streams of an embedded server take.
func (s *Server) Stored(t testing.TB) uint64 {
	t.Helper()
	info, err := s.s.Jsz(nil)
	if err != nil {
		t.Fatalf("embedded NATS: %v", err)
	}
	return info.Store
}

// JetStream returns a JetStream client of the server at the URL, without package bus, until the
// test ends.
func JetStream(t testing.TB, url string) jetstream.JetStream {
	t.Helper()
	nc := connected(t, func() (*nats.Conn, error) { return nats.Connect(url, nats.Timeout(time.Minute)) })
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

// Connect opens a connection that is closed when the test ends.
func (s *Server) Connect(t testing.TB, name string) *bus.Conn { return s.ConnectLocal(t, name, nil) }

// ConnectLocal opens a connection that is connected directly to others of this process; see
// [bus.Local].
func (s *Server) ConnectLocal(t testing.TB, name string, local *bus.Local) *bus.Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c := connected(t, func() (*bus.Conn, error) {
		return bus.Connect(ctx, bus.Options{URL: s.URL, Name: name, Local: local, Log: slog.New(slog.DiscardHandler)})
	})
	t.Cleanup(c.Close)
	return c
}

// connected connects. If that fails it tries again, as processes do: the handshake fails if the
// machine stands still until the server sends a ping in the middle of it.
func connected[C any](t testing.TB, connect func() (C, error)) C {
	t.Helper()
	c, err := connect()
	for tries := 1; err != nil && tries < 10; tries++ {
		c, err = connect()
	}
	if err != nil {
		t.Fatalf("connecting: %v", err)
	}
	return c
}

// Holds returns the texts that are contained in a file of the server, of the data that JetStream
// has written so far.
func (s *Server) Holds(t testing.TB, texts ...[]byte) (found []string) {
	t.Helper()
	root, err := os.OpenRoot(s.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = root.Close() }() // it was only read
	err = fs.WalkDir(root.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil // the server may remove a file during the search
		}
		data, err := fs.ReadFile(root.FS(), path)
		for _, text := range texts {
			if err == nil && bytes.Contains(data, text) {
				found = append(found, fmt.Sprintf("%.40q in %s", text, filepath.Base(path)))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
