// Package embedded runs a NATS server with JetStream inside the process, for
// `callyard up` and for tests.
//
// It promises that what JetStream acknowledged is synced to disk, that two
// processes never share one data directory, that a disk which was full is written
// again within seconds of having room, and that damage to a folder is found before
// anything runs: all of it after a stop in good order, and after a crash what can be known
// from the files themselves. It refuses to listen on anything
// but loopback, and by default listens on nothing at all.
package embedded

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// Options says where the server keeps its data and how it can be reached.
type Options struct {
	// Dir holds the streams. It is made when missing.
	Dir string
	// Listen, when set, is a loopback address ("127.0.0.1:0" for a free port) on
	// which other local processes reach the server. Empty: in-process only.
	Listen string
	// MaxPayload is the largest message in bytes; 0 means 8 MiB.
	MaxPayload int
	// AcceptLoss starts over a folder that was damaged: what is left is used.
	AcceptLoss bool
	// Check, where set, compares the records of a folder that was not stopped in good order
	// with each other, when the server runs and before anything else uses it. since is when
	// a loss was last accepted, zero for never: what is older is left out. keys are the
	// hashes of idempotency keys that are lost.
	Check func(s *Server, since time.Time) (found []Damage, keys []string, err error)
	// Log receives the server's warnings and errors. It must be set.
	Log *slog.Logger
}

// Server is a running NATS server.
type Server struct {
	s    *server.Server
	lock *os.File
	dir  string
	log  *slog.Logger

	jetstream server.JetStreamConfig // as it was started
	losses    []Loss
	known     int      // of losses: those from before this start
	unsealed  bool     // the folder had no seal
	lostKeys  []string // of the seal, where the stream of keys is damaged
	before    map[string]sealedFile
	closing   chan struct{}
	healed    chan struct{} // closed when heal has ended
}

const (
	defaultMaxPayload = 8 << 20
	readyTimeout      = 10 * time.Second
	// maxStore leaves the bound to the disk: the server's own is what was free at its
	// start, which says nothing about later.
	maxStore = 1 << 50
)

// Start starts the server and waits until it takes connections.
func Start(o Options) (*Server, error) {
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("creating the data directory: %w", err)
	}
	lock, err := lockDir(o.Dir)
	if err != nil {
		return nil, err
	}
	e := &Server{lock: lock, dir: o.Dir, log: o.Log, closing: make(chan struct{}), healed: make(chan struct{})}
	if err := e.openFolder(o.AcceptLoss); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	opts := &server.Options{
		ServerName: "callyard", DontListen: true, JetStream: true, StoreDir: filepath.Join(o.Dir, "nats"), SyncAlways: true,
		NoSigs: true, NoLog: true, MaxPayload: defaultMaxPayload, DisableShortFirstPing: true,
		JetStreamMaxStore: maxStore,
	}
	if o.MaxPayload > 0 {
		opts.MaxPayload = int32(min(o.MaxPayload, 64<<20))
	}
	if o.Listen != "" {
		if err := listenOn(opts, o.Listen); err != nil {
			return nil, errors.Join(err, lock.Close())
		}
	}
	s, err := server.NewServer(opts)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("preparing the embedded NATS server: %w", err), lock.Close())
	}
	s.SetLoggerV2(serverLog{o.Log}, false, false, false)
	s.Start()
	if !s.ReadyForConnections(readyTimeout) {
		s.Shutdown()
		s.WaitForShutdown()
		return nil, errors.Join(fmt.Errorf("the embedded NATS server was not ready within %s; see the log above for the reason", readyTimeout), lock.Close())
	}
	e.s = s
	if err := errors.Join(e.findKeys(), e.crossCheck(&o)); err != nil {
		s.Shutdown()
		s.WaitForShutdown()
		return nil, errors.Join(err, lock.Close())
	}
	if c := s.JetStreamConfig(); c != nil {
		e.jetstream = *c
	}
	go e.heal()
	return e, nil
}

func listenOn(opts *server.Options, address string) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("the embedded NATS server's address %q: %w", address, err)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf("the embedded NATS server listens on loopback only, not on %q; run your own nats-server for several machines", host)
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		return fmt.Errorf("the embedded NATS server's port %q is not a number", port)
	}
	if n == 0 {
		n = server.RANDOM_PORT
	}
	opts.DontListen, opts.Host, opts.Port = false, host, n
	return nil
}

// InProcessConn returns a connection that leaves the process nowhere.
func (s *Server) InProcessConn() (net.Conn, error) { return s.s.InProcessConn() }

// URL is the address for other local processes, "" when there is none.
func (s *Server) URL() string {
	if u, err := url.Parse(s.s.ClientURL()); err == nil && s.s.Addr() != nil {
		return u.String()
	}
	return ""
}

// Close stops the server, waits for it and releases the data directory.
func (s *Server) Close() error {
	close(s.closing)
	<-s.healed
	keys, err := s.keys()
	if err != nil {
		s.log.Warn("the idempotency keys could not be recorded in the seal of the data folder", "error", err)
	}
	s.s.Shutdown()
	s.s.WaitForShutdown()
	if err := writeSeal(s.dir, s.before, keys); err != nil {
		s.log.Warn("the data folder cannot be sealed; damage until the next start will not be detected", "error", err)
	}
	if err := s.lock.Close(); err != nil {
		return fmt.Errorf("releasing the data directory: %w", err)
	}
	return nil
}

// serverLog passes on what an operator must see and drops the rest.
type serverLog struct{ log *slog.Logger }

func (l serverLog) Noticef(string, ...any) {}
func (l serverLog) Debugf(string, ...any)  {}
func (l serverLog) Tracef(string, ...any)  {}
func (l serverLog) Warnf(format string, args ...any) {
	l.log.Warn("the NATS server says", "text", fmt.Sprintf(format, args...))
}
func (l serverLog) Errorf(format string, args ...any) {
	l.log.Error("the NATS server says", "text", fmt.Sprintf(format, args...))
}
func (l serverLog) Fatalf(format string, args ...any) {
	l.log.Error("the NATS server says", "text", fmt.Sprintf(format, args...))
}
