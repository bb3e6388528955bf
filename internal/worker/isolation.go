package worker

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/callyard/callyard/internal/launch"
	"github.com/callyard/callyard/internal/launch/bwrap"
	"github.com/callyard/callyard/internal/launch/sandbox"
	"github.com/callyard/callyard/internal/session"
	"github.com/callyard/callyard/pkg/schema"
)

// isolation provides the containers or sandboxes for the calls of one server, one for each call. It
// is safe for concurrent use.
type isolation interface {
	// prepare looks up what is needed. It is called until it returns nil. The error is a
	// *schema.Error.
	prepare(ctx context.Context) error
	// check returns the reason why no container or sandbox is available now, after prepare.
	check(ctx context.Context) error
	// take returns one with an open session, for one principal. It is killed at the deadline.
	// The error is a *schema.Error; then nothing was run.
	take(ctx context.Context, principal string, deadline time.Time) (*use, error)
	// runtime returns the name of the runtime, "" before prepare.
	runtime() string
	// warm returns the number of idle containers that wait for a call.
	warm() int
	// close destroys idle containers and waits for that. Uses must be released before.
	close()
}

// use is one container or sandbox while it runs its only call.
type use struct {
	session *session.Single
	done    <-chan struct{} // closed when nothing of it is left
	how     func() error    // how it ended, after done
	cause   func() string   // why it was killed, in one word; "" if it was not
	release func()          // ends it in the background; may be called more than once
}

// handshake opens the session of a new container or sandbox and compares its tools with those that
// were learned.
type handshake func(ctx context.Context, on session.Process) (*session.Single, error)

// containers is the isolation of a docker section.
type containers struct {
	sandbox *Sandbox
	engine  *lazyEngine
	greet   handshake
	start   time.Duration
	log     *slog.Logger

	mu     sync.Mutex
	pool   *sandbox.Pool[*session.Single]
	pinned sandbox.Spec
	named  string
}

func (c *containers) prepare(ctx context.Context) error {
	c.mu.Lock()
	ready := c.pool != nil
	c.mu.Unlock()
	if ready {
		return nil
	}
	e, err := c.engine.open(ctx)
	if err != nil {
		return err
	}
	spec, err := e.Pin(ctx, c.sandbox.Spec)
	if err != nil {
		return err
	}
	pool := sandbox.OpenPool(e, sandbox.PoolOptions[*session.Single]{
		Spec: spec, StartTimeout: c.start, Log: c.log,
		Handshake: func(ctx context.Context, on *sandbox.Container) (*session.Single, error) {
			return c.greet(ctx, session.Process{Program: on, Stdin: on.Stdin, Stdout: on.Stdout})
		},
	})
	named := c.sandbox.Runtime
	if named == "" {
		named = e.About().Default
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pool, c.pinned, c.named = pool, spec, named
	return nil
}

func (c *containers) check(ctx context.Context) error {
	e, err := c.engine.open(ctx)
	if err != nil {
		return err
	}
	c.mu.Lock()
	spec := c.pinned
	c.mu.Unlock()
	return e.Check(ctx, spec)
}

func (c *containers) take(ctx context.Context, principal string, deadline time.Time) (*use, error) {
	c.mu.Lock()
	pool := c.pool
	c.mu.Unlock()
	u, err := pool.Take(ctx, principal, deadline)
	if err != nil {
		return nil, err
	}
	return &use{
		session: u.Session, done: u.Container.Done(), how: u.Container.Err, release: u.Release,
		cause: func() string { return string(u.Container.Cause()) },
	}, nil
}

func (c *containers) runtime() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.named
}

func (c *containers) warm() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pool == nil {
		return 0
	}
	return c.pool.Ready()
}

func (c *containers) close() {
	c.mu.Lock()
	pool := c.pool
	c.mu.Unlock()
	if pool != nil {
		pool.Close()
	}
}

// sandboxes is the isolation of bubblewrap. Each sandbox is started on demand.
type sandboxes struct {
	sandbox  *Sandbox
	launcher *launch.Launcher
	greet    handshake
	start    time.Duration

	mu    sync.Mutex
	maker *bwrap.Maker
	work  sync.WaitGroup // sandboxes that are ending
}

func (s *sandboxes) prepare(ctx context.Context) error {
	maker, err := bwrap.Open(ctx, bwrap.Options{Launcher: s.launcher})
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.maker = maker
	return nil
}

func (s *sandboxes) open() *bwrap.Maker {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.maker
}

func (s *sandboxes) check(ctx context.Context) error { return s.open().Check(ctx) }

func (s *sandboxes) take(ctx context.Context, _ string, deadline time.Time) (*use, error) {
	server := s.sandbox.Sandbox.Server
	starting, cancel := context.WithTimeout(ctx, s.start)
	defer cancel()
	p, err := s.open().Start(starting, s.sandbox.Sandbox)
	if err != nil {
		return nil, err
	}
	p.Limit(deadline)
	one, err := s.greet(starting, session.Process{Program: p, Stdin: p.Stdin, Stdout: p.Stdout})
	if err != nil {
		p.Kill("was killed because its handshake failed")
		p.Stop(0)
		return nil, schema.Errorf(schema.KindServerFailed, "The server %q did not become ready in its sandbox, which %v: %w.", server, p.Err(), err)
	}
	var once sync.Once
	return &use{
		session: one, done: p.Done(), how: p.Err, cause: func() string { return string(p.Cause()) },
		release: func() {
			once.Do(func() {
				s.work.Go(func() { // a hanging process must not delay its end
					p.Kill("was stopped after its use")
					one.Close()
					p.Stop(0)
				})
			})
		},
	}, nil
}

func (s *sandboxes) runtime() string {
	if s.open() == nil {
		return ""
	}
	return "bwrap"
}

func (s *sandboxes) warm() int { return 0 }
func (s *sandboxes) close()    { s.work.Wait() }
