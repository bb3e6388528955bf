package session

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/callyard/callyard/internal/launch"
	"github.com/callyard/callyard/pkg/schema"
)

// containerExit is the wait for the exit status of a container, which is removed first.
const containerExit = 3 * time.Second

// Solo opens sessions that serve one call each, on programs that the caller starts for them. Each
// session helps to open the next, because Solo remembers the protocol era of the server. It is
// safe for concurrent use.
type Solo struct {
	cfg    Config
	log    *slog.Logger
	client *http.Client // for a dialed server

	mu     sync.Mutex
	guess  era
	probes int
}

// NewSolo returns a Solo for one server. It uses only the limits and timeouts of the
// configuration.
func NewSolo(cfg Config, log *slog.Logger) *Solo {
	cfg.Spec = launch.Spec{ID: cfg.Spec.ID, Type: "stdio"}
	cfg.Sessions, cfg.InFlight, cfg.Queue, cfg.OnDemand, cfg.exitWait = 1, 1, 1, false, containerExit
	cfg.fill()
	return &Solo{cfg: cfg, log: log}
}

// NewDialed returns a Solo for a server on the network, whose sessions are opened with
// [Solo.Dial]. It uses only the server, the limits and the timeouts of the configuration. Close
// ends it.
func NewDialed(cfg Config, log *slog.Logger) *Solo {
	cfg.Sessions, cfg.InFlight, cfg.Queue, cfg.OnDemand = 1, 1, 1, false
	cfg.fill()
	return &Solo{cfg: cfg, log: log, client: launch.HTTPClient(cfg.Spec)}
}

// Dialed reports whether servers of this type are on the network and can keep state per session.
func Dialed(serverType string) bool {
	return serverType == "http" || serverType == "sse" || serverType == launch.TypeWebSocket
}

// Close closes idle connections.
func (o *Solo) Close() {
	if o.client != nil {
		o.client.CloseIdleConnections()
	}
}

// Dial opens a new session with a dialed server. ctx limits the opening. The session uses the
// legacy era, in which a server keeps state per session. The error is a *schema.Error:
// KindConflict if the server has no sessions, else KindServerFailed.
func (o *Solo) Dial(ctx context.Context) (*Single, error) {
	p := newPool(o.cfg, o.log, func() {})
	p.cutOff = true // a call that its session cannot take must not wait
	p.offers.defs = &schema.Definitions{}
	p.client = o.client
	ended := context.AfterFunc(ctx, p.cancel)
	s, _, err := p.attempt(eraLegacy, 0)
	if err != nil {
		ended()
		p.cancel()
		return nil, schema.Errorf(schema.KindServerFailed, "A session with the server %q could not be opened: %w.", o.cfg.Spec.ID, err)
	}
	one := newSingle(p, s)
	if l, ok := s.link.(*remoteLink); ok && l.id == "" {
		one.Close()
		return nil, schema.Errorf(schema.KindConflict, "The server %q gives no session ids, so it cannot keep state by session.", o.cfg.Spec.ID)
	}
	if !ended() {
		one.Close()
		return nil, schema.Errorf(schema.KindServerFailed, "The session with the server %q was not ready in time.", o.cfg.Spec.ID)
	}
	return one, nil
}

// Open performs the handshake with the program and reads its definitions. ctx limits that. On an
// error the program has been stopped, and [Tail] returns the end of its stderr.
func (o *Solo) Open(ctx context.Context, on Process) (*Single, error) {
	p := newPool(o.cfg, o.log, func() {})
	p.cutOff = true // a call that its session cannot take must not wait
	p.start = func() (*Process, error) { return &on, nil }
	ended := context.AfterFunc(ctx, p.cancel)
	o.mu.Lock()
	guess, probes := o.guess, o.probes
	o.mu.Unlock()
	s, how, err := p.attempt(guess, min(o.cfg.ProbeTimeout<<min(probes, maxProbes), o.cfg.StartTimeout/2))
	o.learn(guess, how, err)
	if err != nil {
		ended()
		p.cancel()
		return nil, err
	}
	one := newSingle(p, s)
	if !ended() {
		one.Close()
		return nil, ctx.Err()
	}
	o.log.Debug("session ready for one call", "server", o.cfg.Spec.ID, "took", time.Since(s.born))
	return one, nil
}

// learn records what an attempt revealed about the server's protocol era; see [keeper.open].
func (o *Solo) learn(guess era, how probeResult, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case how == probeLate:
		o.probes = maxProbes
	case how == probeUnanswered:
		o.probes++
		o.guess = eraLegacy
	case err != nil && guess == eraLegacy:
		o.guess = eraUnknown
	}
}

// Tail returns the end of the stderr of a program that did not become ready, if err is such an
// error; else "".
func Tail(err error) string {
	if how, ok := errors.AsType[*startError](err); ok {
		return how.tail
	}
	return ""
}

// Single is a session for one call.
type Single struct {
	pool *Pool
	s    *session
	once sync.Once
}

// newSingle makes s the only session of a pool.
func newSingle(p *Pool, s *session) *Single {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.live = []*session{s}
	p.greeted(s)
	return &Single{pool: p, s: s}
}

// Snapshot returns the current state of the server.
func (o *Single) Snapshot() schema.Server { return o.pool.Snapshot() }

// Definitions is [Pool.Definitions] for this session.
func (o *Single) Definitions() (*schema.Definitions, string) { return o.pool.Definitions() }

// Do is [Pool.Do]. A call that the session cannot take ends at once.
func (o *Single) Do(req *Request, done func(*Request, Outcome)) *Running {
	select {
	case <-o.s.dead:
		r := &Running{req: req, done: done}
		r.end(Outcome{Err: &schema.Error{Kind: schema.KindUnavailable, Retryable: true,
			Detail: fmt.Sprintf("The session with the server %q ended before the call was sent: %v.", o.pool.cfg.Spec.ID, o.s.cause())}})
		return r
	default:
		return o.pool.Do(req, done)
	}
}

// Close ends the session, its call and its program, and waits for all of them. It may be called
// more than once.
func (o *Single) Close() {
	o.once.Do(func() {
		o.pool.mu.Lock()
		o.pool.closing = true
		o.pool.mu.Unlock()
		o.pool.cut()
		o.s.failed.Store(true) // it need not shut down gracefully
		o.s.close()
		o.pool.cancel()
		o.pool.work.Wait()
	})
}
