package session

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/callyard/callyard/internal/launch"
	"github.com/callyard/callyard/pkg/schema"
)

// Config says how the sessions of one server are held. Zero values mean the
// defaults.
type Config struct {
	Spec         launch.Spec
	Sessions     int           // live sessions, default 1
	InFlight     int           // calls at once on each session, default 64
	Queue        int           // calls that may wait for a session, default Sessions×InFlight
	CallTimeout  time.Duration // for calls that bring none, default 60 s
	StartTimeout time.Duration // for starting, the handshake and the first lists, default 20 s
	ProbeTimeout time.Duration // for the answer to server/discover, default 2 s
	IdleStop     time.Duration // stop all sessions when unused as long; 0 means never
	OnDemand     bool          // start for the definitions once, then with the first call only
	MaxResult    int           // bytes, default 64 MiB
	HealthEvery  time.Duration // between checks of a quiet session, default 30 s
}

func (c *Config) fill() {
	set := func(p *int, v int) {
		if *p <= 0 {
			*p = v
		}
	}
	last := func(p *time.Duration, v time.Duration) {
		if *p <= 0 {
			*p = v
		}
	}
	set(&c.Sessions, 1)
	set(&c.InFlight, 64)
	set(&c.Queue, c.Sessions*c.InFlight)
	set(&c.MaxResult, 64<<20)
	last(&c.CallTimeout, time.Minute)
	last(&c.StartTimeout, 20*time.Second)
	last(&c.ProbeTimeout, 2*time.Second)
	last(&c.HealthEvery, 30*time.Second)
	if c.Spec.Type == "" {
		c.Spec.Type = "stdio"
	}
}

const (
	firstPause  = 100 * time.Millisecond
	longPause   = 30 * time.Second
	openBreaker = 5 // failures in a row
)

// Pool holds the sessions of one server. It is safe for concurrent use.
type Pool struct {
	cfg     Config
	log     *slog.Logger
	starter *launch.Launcher
	client  *http.Client // of remote servers
	version string
	changed func()

	ctx      context.Context // ends when the pool is closed
	cancel   context.CancelFunc
	work     sync.WaitGroup
	refreshC chan struct{}
	noise    atomic.Int64
	active   atomic.Int64 // calls whose caller was not told their end
	lastUse  atomic.Int64 // Unix nanoseconds

	mu       sync.Mutex
	live     []*session
	all      map[*session]struct{} // also those on their way out
	queue    []*Running            // ended ones stay in it until they come up
	waiting  int                   // calls in the queue that have not ended
	closing  bool
	cutOff   bool          // no call may wait any more
	drained  chan struct{} // closed when the pool is closing and no call is left
	drainOne sync.Once

	parked bool          // no session wanted before a call comes
	flip   chan struct{} // closed and replaced when parked changes

	state    schema.InitializationState
	fault    error  // why state is not initialized
	tail     string // of stderr, with fault
	fails    []int  // in a row, for each place
	restarts int
	protocol string
	title    string
	server   string // version of the server
	guess    era
	probes   int // how often server/discover went unheard in a row

	defs   *schema.Definitions
	digest string
}

// Open returns a pool that opens its sessions in the background. changed is
// called after each change of Snapshot or Definitions, from any goroutine; it
// must be cheap.
func Open(cfg Config, l *launch.Launcher, log *slog.Logger, changed func()) *Pool {
	cfg.fill()
	p := &Pool{
		cfg: cfg, log: log.With("server", cfg.Spec.ID), starter: l, changed: changed, version: "dev",
		refreshC: make(chan struct{}, 1), all: make(map[*session]struct{}), drained: make(chan struct{}),
		flip: make(chan struct{}), parked: cfg.OnDemand, state: schema.StateStarting, fails: make([]int, cfg.Sessions),
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		p.version = info.Main.Version
	}
	if cfg.Spec.Type != "stdio" {
		p.client = launch.HTTPClient(cfg.Spec)
	}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.lastUse.Store(time.Now().UnixNano())
	for place := range cfg.Sessions {
		p.work.Go(func() { p.keep(place) })
	}
	p.work.Go(p.refresh)
	return p
}

// Do starts a call. It does not block; done is called exactly once, from any
// goroutine and possibly before Do returns, and must not block either.
func (p *Pool) Do(req *Request, done func(*Request, Outcome)) *Running {
	r := &Running{req: req, done: done, pool: p, timeout: req.Timeout}
	if r.timeout <= 0 {
		r.timeout = p.cfg.CallTimeout
	}
	p.active.Add(1)
	// A request that is no JSON object could say something else than was checked.
	if len(req.Params) > 0 && !isObject(req.Params) {
		return p.refuse(r, schema.KindInvalidRequest, false, "The arguments for the server %q are not a JSON object; nothing was sent.", p.cfg.Spec.ID)
	}
	p.mu.Lock()
	s := p.pick()
	behind := s != nil && p.waiting > 0 // first come, first served
	if behind {
		s = nil
	}
	switch {
	case p.closing:
		p.mu.Unlock()
		return p.refuse(r, schema.KindUnavailable, true, "The sessions of the server %q are being closed; send the call again.", p.cfg.Spec.ID)
	case s == nil && p.broken():
		err := p.faultLocked()
		p.mu.Unlock()
		r.end(Outcome{Err: err})
		return r
	case s == nil && p.waiting >= p.cfg.Queue:
		p.mu.Unlock()
		return p.refuse(r, schema.KindUnavailable, true, "The server %q is busy: all of its %d places are taken and %d calls are waiting. Try again a little later.",
			p.cfg.Spec.ID, p.cfg.Sessions*p.cfg.InFlight, p.cfg.Queue)
	}
	r.timer = time.AfterFunc(r.timeout, r.expire)
	if s == nil {
		p.queue = append(p.queue, r)
		p.waiting++
		p.unpark()
		p.mu.Unlock()
		if behind {
			p.pump()
		}
		return r
	}
	p.unpark()
	r.on = s
	s.load++
	p.mu.Unlock()
	p.send(s, r)
	return r
}

func (p *Pool) refuse(r *Running, kind schema.Kind, retry bool, format string, args ...any) *Running {
	err := schema.Errorf(kind, format, args...)
	err.Retryable = retry
	r.end(Outcome{Err: err})
	return r
}

func (p *Pool) send(s *session, r *Running) {
	if !s.link.send(r) {
		p.requeue(r)
	}
}

// pick returns the live session with the fewest calls, nil where all are full.
// The caller holds p.mu.
func (p *Pool) pick() *session {
	var best *session
	for _, s := range p.live {
		if s.load < p.cfg.InFlight && (best == nil || s.load < best.load) {
			best = s
		}
	}
	return best
}

// release frees the place of a call that has just ended and hands it on. It
// returns the session that the call was on, nil where it was waiting.
func (p *Pool) release(r *Running) *session {
	p.mu.Lock()
	s := r.on
	if s == nil {
		// A refused call was never in the queue; it has no timer either.
		if r.timer != nil {
			p.waiting--
		}
		p.mu.Unlock()
		return nil
	}
	s.load--
	more := p.waiting > 0
	p.mu.Unlock()
	if more {
		p.pump()
	}
	return s
}

// finished counts a call whose caller was told.
func (p *Pool) finished() {
	if p.active.Add(-1) == 0 {
		p.lastUse.Store(time.Now().UnixNano())
		p.mu.Lock()
		p.checkDrained()
		p.mu.Unlock()
	}
}

func (p *Pool) checkDrained() {
	if p.closing && p.active.Load() == 0 {
		p.drainOne.Do(func() { close(p.drained) })
	}
}

// requeue puts a call that never left a lost session in front of the others.
func (p *Pool) requeue(r *Running) {
	p.mu.Lock()
	if r.ended.Load() { // whoever ended it frees its place
		p.mu.Unlock()
		return
	}
	if p.cutOff {
		p.mu.Unlock()
		r.end(p.closedBefore())
		return
	}
	r.on.load--
	r.on = nil
	p.queue = append([]*Running{r}, p.queue...)
	p.waiting++
	p.mu.Unlock()
	p.pump()
}

// pump gives waiting calls to sessions that have a place.
func (p *Pool) pump() {
	for {
		p.mu.Lock()
		var r *Running
		s := p.pick()
		for s != nil && r == nil && len(p.queue) > 0 {
			r = p.queue[0]
			p.queue[0] = nil
			p.queue = p.queue[1:]
			if r.ended.Load() {
				r = nil
			}
		}
		if r == nil {
			p.mu.Unlock()
			return
		}
		p.waiting--
		r.on = s
		s.load++
		p.mu.Unlock()
		p.send(s, r)
	}
}

// broken reports whether calls have nothing to wait for. The caller holds p.mu.
func (p *Pool) broken() bool {
	if len(p.live) > 0 {
		return false
	}
	for _, n := range p.fails {
		if n < openBreaker {
			return false
		}
	}
	return true
}

// faultLocked words why there is no session. The caller holds p.mu.
func (p *Pool) faultLocked() *schema.Error {
	return &schema.Error{Kind: schema.KindServerFailed, Retryable: true,
		Detail: fmt.Sprintf("The server %q is not available: %v. The call did not start.", p.cfg.Spec.ID, p.fault)}
}

// notReady words why a call got no session within its time.
func (p *Pool) notReady(waited time.Duration) *schema.Error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case len(p.live) > 0:
		return &schema.Error{Kind: schema.KindUnavailable, Retryable: true,
			Detail: fmt.Sprintf("The server %q was busy for %v; the call did not start. Try again a little later.", p.cfg.Spec.ID, waited)}
	case p.fault != nil:
		return p.faultLocked()
	}
	return &schema.Error{Kind: schema.KindServerFailed, Retryable: true,
		Detail: fmt.Sprintf("The server %q was not ready within %v; the call did not start.", p.cfg.Spec.ID, waited)}
}

// Snapshot returns the server as it stands. Risk and trust are for the caller to
// fill in.
func (p *Pool) Snapshot() schema.Server {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := schema.Server{
		ID: p.cfg.Spec.ID, State: p.state, Transport: p.cfg.Spec.Type, Digest: p.digest,
		Slots: p.cfg.Sessions * p.cfg.InFlight, Sessions: len(p.live), Restarts: p.restarts,
		Protocol: p.protocol, Title: p.title, Version: p.server, Timeout: p.cfg.CallTimeout,
	}
	for _, s := range p.live {
		if s.child != nil {
			out.PID = s.child.PID()
			break
		}
	}
	if p.state != schema.StateInitialized && p.fault != nil {
		out.Error, out.StderrTail = p.fault.Error(), p.tail
	}
	return out
}

// Definitions returns what the server offers, as it sent it, and the digest of
// that; nil until it was read once. The value is shared: it must not be changed.
func (p *Pool) Definitions() (*schema.Definitions, string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.defs, p.digest
}

// InFlight returns how many calls run or wait here.
func (p *Pool) InFlight() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.waiting
	for s := range p.all {
		n += s.load
	}
	return n
}

// Noise returns how many lines or messages were no protocol.
func (p *Pool) Noise() int64 { return p.noise.Load() }

// Close takes no more calls, lets those that it has go on until ctx ends, ends
// the rest, stops the sessions and waits for every goroutine. The error says
// that calls were cut off. It must be called once.
func (p *Pool) Close(ctx context.Context) error {
	p.mu.Lock()
	p.closing = true
	p.checkDrained()
	p.mu.Unlock()
	var err error
	select {
	case <-p.drained:
	case <-ctx.Done():
		if n := p.cut(); n > 0 {
			err = fmt.Errorf("closing the sessions of the server %q: %d calls were cut off: %w", p.cfg.Spec.ID, n, ctx.Err())
		}
		<-p.drained
	}
	p.cancel()
	p.work.Wait()
	if p.client != nil {
		p.client.CloseIdleConnections()
	}
	return err
}

// cut ends the calls that are left and returns how many there were.
func (p *Pool) cut() int64 {
	n := p.active.Load()
	p.mu.Lock()
	p.cutOff, p.live = true, nil
	waiting := p.queue
	p.queue = nil
	var sessions []*session
	for s := range p.all {
		sessions = append(sessions, s)
	}
	p.mu.Unlock()
	for _, r := range waiting {
		r.end(p.closedBefore())
	}
	for _, s := range sessions {
		s.endCalls(errClosed, func(*Running) Outcome {
			return Outcome{Started: true, Err: schema.Errorf(schema.KindOutcomeUnknown,
				"The worker closed its session with the server %q while the call was running; the call may have run.", p.cfg.Spec.ID)}
		})
	}
	return n
}

func (p *Pool) closedBefore() Outcome {
	return Outcome{Err: &schema.Error{Kind: schema.KindUnavailable, Retryable: true,
		Detail: fmt.Sprintf("The sessions of the server %q were closed before the call was sent.", p.cfg.Spec.ID)}}
}

// pause is how long to wait before the next attempt after n failures in a row.
func pause(n int) time.Duration {
	d := longPause
	if n < openBreaker {
		d = min(firstPause<<max(n-1, 0), longPause)
	}
	return d/2 + rand.N(d/2+1)
}
