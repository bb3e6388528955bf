package sandbox

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/callyard/callyard/internal/kit/backoff"
	"github.com/callyard/callyard/internal/launch"
)

const maxIdle = 10 * time.Minute // a container that has waited longer is replaced

// pauses are the waits between failing starts.
var pauses = backoff.Policy{First: 500 * time.Millisecond, Max: 30 * time.Second, Jitter: 0.5}

// Handshake prepares a new container for its use: it opens the MCP session and checks that the server
// offers what it should. An error destroys the container. ctx ends at the start timeout.
type Handshake[S any] func(ctx context.Context, c *Container) (S, error)

// Closer is the part of a session that the pool needs. Close ends the session and waits for
// everything that it started. It is called before the container is stopped.
type Closer interface{ Close() }

// PoolOptions configure a [Pool].
type PoolOptions[S Closer] struct {
	Spec      Spec // pinned; Spec.Pool is the number of containers kept ready
	Handshake Handshake[S]
	// StartTimeout limits the start and the handshake. The default is 20 s.
	StartTimeout time.Duration
	Log          *slog.Logger // its records have the attribute "server" already
}

// Pool keeps containers of one server ready. Each is handed out once, to one principal, and destroyed
// afterwards. It is safe for concurrent use.
type Pool[S Closer] struct {
	o      PoolOptions[S]
	engine *Engine
	log    *slog.Logger
	ctx    context.Context
	cancel context.CancelFunc
	work   sync.WaitGroup

	mu       sync.Mutex
	closed   bool
	idle     []*ready[S] // oldest first
	waiters  []*waiter[S]
	starting int
	fails    int         // consecutive failures
	reported string      // the last logged error of a start; "" after a success
	again    *time.Timer // set while refills are paused after failures
}

// ready is a container that waits for its use.
type ready[S Closer] struct {
	c       *Container
	session S
	taken   chan struct{} // closed when it is no longer idle
}

type waiter[S Closer] struct {
	got chan outcome[S] // has capacity 1
}

type outcome[S Closer] struct {
	r   *ready[S]
	err error
}

// Use is the one use of a container.
type Use[S Closer] struct {
	// Session is the result of the handshake.
	Session S
	// Container is the container of the session.
	Container *Container
	// Warm means that the container was ready when it was requested.
	Warm bool

	pool *Pool[S]
	once sync.Once
}

// OpenPool returns a Pool that fills itself in the background.
func OpenPool[S Closer](e *Engine, o PoolOptions[S]) *Pool[S] {
	if o.StartTimeout <= 0 {
		o.StartTimeout = 20 * time.Second
	}
	p := &Pool[S]{o: o, engine: e, log: o.Log}
	p.ctx, p.cancel = context.WithCancel(context.Background()) //nolint:gosec // Close calls it
	p.mu.Lock()
	p.fillLocked()
	p.mu.Unlock()
	return p
}

// Ready returns the number of containers that wait for a use.
func (p *Pool[S]) Ready() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.idle)
}

// Take hands a container to the principal: a warm one if there is one, otherwise a new one. It is
// killed at the deadline, or Spec.Time from now if that is earlier. The caller must call
// [Use.Release]. The error is a *schema.Error; nothing was run then.
func (p *Pool[S]) Take(ctx context.Context, principal string, deadline time.Time) (*Use[S], error) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, p.closing()
	}
	for len(p.idle) > 0 {
		r := p.idle[0]
		p.idle = p.idle[1:]
		close(r.taken)
		<-p.engine.warm
		select {
		case <-r.c.Done(): // it ended while it waited
			p.destroyLocked(r)
			continue
		default:
		}
		p.fillLocked()
		p.mu.Unlock()
		return p.use(r, principal, deadline, true)
	}
	w := &waiter[S]{got: make(chan outcome[S], 1)}
	p.waiters = append(p.waiters, w)
	p.fillLocked()
	p.mu.Unlock()

	select {
	case o := <-w.got:
		if o.err != nil {
			return nil, o.err
		}
		return p.use(o.r, principal, deadline, false)
	case <-ctx.Done():
	}
	p.mu.Lock()
	p.forgetLocked(w)
	p.mu.Unlock()
	select {
	case o := <-w.got: // it arrived at the last moment
		if o.err == nil {
			return p.use(o.r, principal, deadline, false)
		}
	default:
	}
	return nil, launch.Unavailable("No container of the server %q was ready in time.", p.o.Spec.Server)
}

func (p *Pool[S]) use(r *ready[S], principal string, deadline time.Time, warm bool) (*Use[S], error) {
	u := &Use[S]{Session: r.session, Container: r.c, Warm: warm, pool: p}
	if err := r.c.claim(principal); err != nil {
		p.log.Error("a container would have been assigned twice", "error", err)
		u.Release()
		return nil, launch.Failed("The container of server %q was already used; it is not used again.", p.o.Spec.Server)
	}
	r.c.Limit(deadline)
	return u, nil
}

// Release ends the use. It closes the session and destroys the container in the background;
// [Pool.Close] waits for that. It may be called more than once.
func (u *Use[S]) Release() {
	u.once.Do(func() {
		p := u.pool
		p.mu.Lock()
		defer p.mu.Unlock()
		p.destroyLocked(&ready[S]{c: u.Container, session: u.Session})
	})
}

// destroyLocked ends a container in the background. After Close no background work may start, so it
// ends the container synchronously then.
func (p *Pool[S]) destroyLocked(r *ready[S]) {
	end := func() {
		// Kill the container first, so that a hanging server does not delay the end.
		r.c.kill("was stopped after its use")
		r.session.Close()
		r.c.Stop(0)
	}
	if p.closed {
		p.mu.Unlock()
		end()
		p.mu.Lock()
		return
	}
	p.work.Go(end)
}

func (p *Pool[S]) forgetLocked(w *waiter[S]) {
	for i, other := range p.waiters {
		if other == w {
			p.waiters = append(p.waiters[:i:i], p.waiters[i+1:]...)
			return
		}
	}
}

// fillLocked starts the missing containers: one for each waiter, and as many in advance as the pool
// and the Engine allow.
func (p *Pool[S]) fillLocked() {
	if p.closed {
		return
	}
	for p.starting < len(p.waiters) {
		p.startLocked(false)
	}
	if p.again != nil {
		return
	}
	for p.starting+len(p.idle) < len(p.waiters)+p.o.Spec.Pool {
		select {
		case p.engine.warm <- struct{}{}:
			p.startLocked(true)
		default:
			return // other pools occupy the places; the next use of this pool tries again
		}
	}
}

// startLocked starts one container. ahead means that it occupies a warm place.
func (p *Pool[S]) startLocked(ahead bool) {
	p.starting++
	p.work.Go(func() {
		r, err := p.start()
		p.mu.Lock()
		defer p.mu.Unlock()
		p.starting--
		if err != nil {
			if ahead {
				<-p.engine.warm
			}
			p.failedLocked(err)
			return
		}
		p.fails = 0
		if p.reported != "" {
			p.reported = ""
			p.log.Info("containers start again")
		}
		p.arrivedLocked(r, ahead)
	})
}

// start prepares one container.
func (p *Pool[S]) start() (*ready[S], error) {
	ctx, cancel := context.WithTimeout(p.ctx, p.o.StartTimeout)
	defer cancel()
	c, err := p.engine.Start(ctx, p.o.Spec)
	if err != nil {
		return nil, err
	}
	// A server that hangs must not block the handshake either.
	stop := context.AfterFunc(ctx, func() { c.kill("was killed because it was not ready in time") })
	session, err := p.o.Handshake(ctx, c)
	if err == nil && !stop() {
		session.Close()
		err = ctx.Err()
	}
	if err != nil {
		stop()
		c.kill("was killed because its handshake failed")
		c.Stop(0)
		if p.ctx.Err() != nil {
			return nil, p.closing()
		}
		if errors.Is(err, context.DeadlineExceeded) {
			return nil, launch.Failed("The server %q did not become ready in its container within %v; its last output on stderr: %q.", p.o.Spec.Server, p.o.StartTimeout, c.StderrTail())
		}
		return nil, launch.Failed("The server %q did not become ready in its container, which %v: %w.", p.o.Spec.Server, c.Err(), err)
	}
	return &ready[S]{c: c, session: session, taken: make(chan struct{})}, nil
}

// arrivedLocked gives a container to the first waiter, or keeps it.
func (p *Pool[S]) arrivedLocked(r *ready[S], ahead bool) {
	if len(p.waiters) > 0 && !p.closed {
		w := p.waiters[0]
		p.waiters = p.waiters[1:]
		w.got <- outcome[S]{r: r}
		if ahead {
			<-p.engine.warm
		}
		p.fillLocked()
		return
	}
	if !ahead && !p.closed && len(p.idle) < p.o.Spec.Pool { // its waiter has left
		select {
		case p.engine.warm <- struct{}{}:
			ahead = true
		default:
		}
	}
	if !ahead || p.closed || len(p.idle) >= p.o.Spec.Pool {
		if ahead {
			<-p.engine.warm
		}
		p.destroyLocked(r)
		return
	}
	p.idle = append(p.idle, r)
	p.work.Go(func() { p.mind(r) })
}

// mind replaces a container that ends or becomes too old while it waits.
func (p *Pool[S]) mind(r *ready[S]) {
	old := time.NewTimer(maxIdle*3/4 + rand.N(maxIdle/4)) // spread the replacements
	defer old.Stop()
	select {
	case <-r.taken:
		return
	case <-r.c.Done():
		p.log.Warn("a container ended before it was used", "how", r.c.Err())
	case <-old.C:
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, other := range p.idle {
		if other == r {
			p.idle = append(p.idle[:i:i], p.idle[i+1:]...)
			<-p.engine.warm
			p.destroyLocked(r)
			select {
			case <-r.c.Done():
				p.backOffLocked() // otherwise a server that ends by itself would be restarted forever
			default:
				p.fillLocked()
			}
			return
		}
	}
}

// failedLocked reports the error to the first waiter and slows the refill down.
func (p *Pool[S]) failedLocked(err error) {
	if len(p.waiters) > 0 {
		w := p.waiters[0]
		p.waiters = p.waiters[1:]
		w.got <- outcome[S]{err: err}
	}
	if p.closed {
		return
	}
	if text := err.Error(); text != p.reported {
		p.reported = text
		p.log.Warn("no container; starts are tried again, and the same error is not logged again", "error", err)
	}
	p.backOffLocked()
	p.fillLocked()
}

// backOffLocked pauses starts in advance, longer with each failure.
func (p *Pool[S]) backOffLocked() {
	if p.closed || p.again != nil {
		return
	}
	d := pauses.Delay(p.fails)
	p.fails++
	p.again = time.AfterFunc(d, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.again = nil
		p.fillLocked()
	})
}

func (p *Pool[S]) closing() error {
	return launch.Unavailable("The containers of the server %q are being closed; the call was not started.", p.o.Spec.Server)
}

// Close hands out no more containers, destroys the waiting ones, and returns when everything that
// the pool started has ended. Uses that were not released continue until their deadline. It may be
// called more than once.
func (p *Pool[S]) Close() {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		p.work.Wait()
		return
	}
	idle, waiters := p.idle, p.waiters
	p.idle, p.waiters = nil, nil
	for _, w := range waiters {
		w.got <- outcome[S]{err: p.closing()}
	}
	for _, r := range idle {
		close(r.taken)
		<-p.engine.warm
		p.destroyLocked(r)
	}
	p.closed = true
	if p.again != nil {
		p.again.Stop()
	}
	p.mu.Unlock()
	p.cancel()
	p.work.Wait()
}
