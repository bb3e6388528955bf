// Package embedded runs a NATS server with JetStream in this process, for `callyard up` and for
// tests.
//
// Everything that JetStream acknowledged is synced to disk. Two processes never share one data
// folder. After a disk was full, writes resume within seconds when there is free space. Damage to a
// folder is found before anything runs: all damage after a clean stop, and after a crash the damage
// that shows in the files themselves. The server listens only on loopback, and by default not at
// all.
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
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/callyard/callyard/internal/kit/urls"
)

// Options configure the data folder and the address of the server.
type Options struct {
	// Dir holds the streams. It is created if it does not exist.
	Dir string
	// Listen is a loopback address for other local processes ("127.0.0.1:0" for a free port). If
	// empty, only this process can connect.
	Listen string
	// MaxPayload is the maximum message size in bytes; 0 means 8 MiB.
	MaxPayload int
	// AcceptLoss starts a damaged folder with the remaining data.
	AcceptLoss bool
	// Check, if set, compares the records of a folder that was not stopped cleanly with each other.
	// It runs after the server has started and before anything else uses it. since is the time of
	// the last accepted loss, or zero; older records are skipped. keys are the hashes of lost
	// idempotency keys.
	Check func(s *Server, since time.Time) (found []Damage, keys []string, err error)
	// Log receives the server's warnings and errors. It is required.
	Log *slog.Logger
}

// Server is a running NATS server.
type Server struct {
	s    *server.Server
	lock *os.File
	dir  string
	log  *slog.Logger

	jetstream server.JetStreamConfig // the configuration at its start
	losses    []Loss
	known     int      // number of losses from before this start
	unsealed  bool     // the folder had no seal
	lostKeys  []string // from the seal, if the stream of keys is damaged
	before    map[string]sealedFile
	closing   chan struct{}
	healed    chan struct{} // closed when heal has ended
}

const (
	defaultMaxPayload = 8 << 20
	readyTimeout      = 10 * time.Second
	// maxStore leaves the limit to the disk. The server's own default is the free space at its
	// start, which may change.
	maxStore = 1 << 50
)

// Start starts the server and waits until it accepts connections.
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
	log := &serverLog{log: o.Log}
	s.SetLoggerV2(log, false, false, false)
	s.Start()
	if err := log.refused(o.Dir); err != nil {
		s.Shutdown()
		s.WaitForShutdown()
		return nil, errors.Join(err, lock.Close())
	}
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
	if !urls.Loopback(host) {
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

// InProcessConn returns an in-process connection.
func (s *Server) InProcessConn() (net.Conn, error) { return s.s.InProcessConn() }

// URL returns the address for other local processes, or "" if there is none.
func (s *Server) URL() string {
	if u, err := url.Parse(s.s.ClientURL()); err == nil && s.s.Addr() != nil {
		return u.String()
	}
	return ""
}

// Close stops the server, waits for it and releases the data folder.
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

// serverLog passes on warnings and errors and drops the rest.
type serverLog struct {
	log *slog.Logger

	mu    sync.Mutex
	fatal string // the first error after which the server gave up
}

// refused returns the error after which the server gave up its start, or nil. The server ends the
// process then, unless it is embedded.
func (l *serverLog) refused(dir string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fatal == "" {
		return nil
	}
	return fmt.Errorf("%s; the data of the server is in %s, which must be a folder that this process can write", l.fatal, filepath.Join(dir, "nats"))
}

func (l *serverLog) Noticef(string, ...any) {}
func (l *serverLog) Debugf(string, ...any)  {}
func (l *serverLog) Tracef(string, ...any)  {}
func (l *serverLog) Warnf(format string, args ...any) {
	l.log.Warn("message of the embedded NATS server", "text", fmt.Sprintf(format, args...))
}
func (l *serverLog) Errorf(format string, args ...any) {
	l.log.Error("message of the embedded NATS server", "text", fmt.Sprintf(format, args...))
}
func (l *serverLog) Fatalf(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	l.mu.Lock()
	if l.fatal == "" {
		l.fatal = text
	}
	l.mu.Unlock()
	l.log.Error("message of the embedded NATS server", "text", text)
}
