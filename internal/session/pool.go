package session

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/callyard/callyard/internal/buildinfo"
	"github.com/callyard/callyard/internal/kit/backoff"
	"github.com/callyard/callyard/internal/kit/warnings"
	"github.com/callyard/callyard/internal/launch"
	"github.com/callyard/callyard/internal/launch/native"
	"github.com/callyard/callyard/internal/telemetry"
	"github.com/callyard/callyard/pkg/schema"
)

// Config configures the sessions of one server. Zero values mean the defaults.
type Config struct {
	Spec         launch.Spec
	Client       *http.Client  // for a server that is adapted in this process; if nil, one is made from Spec
	Sessions     int           // live sessions, default 1
	InFlight     int           // concurrent calls per session, default 128
	Queue        int           // calls that may wait for a session, default Sessions×InFlight
	CallTimeout  time.Duration // for calls without a timeout, default 60 s
	StartTimeout time.Duration // for starting, the handshake and the first lists, default [StartTimeout]
	ProbeTimeout time.Duration // for the answer to server/discover, default 2 s
	IdleStop     time.Duration // stop all sessions after this time without calls; 0 means never
	OnDemand     bool          // start once to read the definitions, then only for calls
	MaxResult    int           // bytes, default 64 MiB
	HealthEvery  time.Duration // between checks of a quiet session, default 30 s

	// Declares holds client capabilities that are declared on the shared sessions of a server
	// that may ask its callers, because servers list some tools only to such clients. Requests
	// that the server sends there are refused. If nil, none are declared.
	Declares []byte

	// Program starts the program that serves MCP over its standard streams, if it is not the
	// command of Spec. It is nil for any other server.
	Program func() (*Process, error)

	// Tells means that the program receives the session, the clock and the seed of each request
	// in _meta. It is for programs of this process, which use them like functions.
	Tells bool

	// Native opens a server whose tools are functions of this process. It is called for each
	// session. It is nil for any other server.
	Native OpenNative

	// Attached means that programs attach to the server by themselves, see [Pool.Attach].
	// Sessions then limits the number of programs, and InFlight the concurrent calls of each.
	Attached bool

	// Pinned means that a call runs only on a session whose server listed the tool with the
	// definition that [Request].Digest names. Each session reads the lists before its first
	// call, and calls wait while a session reads them again.
	Pinned bool

	// Updated is called with the changed resources among those that [Pool.Watch] named. It must
	// not block. If nil, changes are not watched.
	Updated func(uris []string)

	// Traces makes a span for each request that is sent. If nil, there are none.
	Traces *telemetry.Traces

	pingEvery time.Duration // interval between pings of a WebSocket server, default [attach.PingEvery]
	checkTime time.Duration // timeout of a health check, default 5 s
	exitWait  time.Duration // wait for the exit status of a program, default 1 s
}

// OpenNative opens a server and returns a function that closes it. The error is a sentence for
// the operator.
type OpenNative func(log *slog.Logger) (server *native.Server, closer func(), err error)

// StartTimeout is the default time that a server may take to start. The first run through npx or
// uvx downloads the server.
const StartTimeout = 2 * time.Minute

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
	set(&c.InFlight, 128)
	set(&c.Queue, c.Sessions*c.InFlight)
	set(&c.MaxResult, 64<<20)
	last(&c.CallTimeout, time.Minute)
	last(&c.StartTimeout, StartTimeout)
	last(&c.ProbeTimeout, 2*time.Second)
	last(&c.HealthEvery, 30*time.Second)
	last(&c.checkTime, 5*time.Second)
	last(&c.exitWait, time.Second)
	if c.Spec.Type == "" {
		c.Spec.Type = "stdio"
	}
}

const (
	lossPause   = time.Second // at most, for a server that starts and fails in use
	openBreaker = 5           // consecutive failures
)

// pauses sets the pauses between the starts of a server that fails.
var pauses = backoff.Policy{First: 100 * time.Millisecond, Max: 30 * time.Second, Jitter: 0.5}

// Pool holds the sessions of one server. It is safe for concurrent use.
type Pool struct {
	cfg     Config
	log     *slog.Logger
	start   func() (*Process, error) // starts a stdio server
	client  *http.Client             // for remote servers
	large   chan struct{}            // semaphore for large answers of a remote server
	version string
	changed func()

	keepers       []*keeper // one per session
	programs      *programs // attached programs; nil if none may attach
	offers        offers
	subscriptions subscriptions
	declared      *mcp.ClientCapabilities // set for a caller's own sessions, else nil

	ctx     context.Context // ends when the pool is closed
	cancel  context.CancelFunc
	work    sync.WaitGroup
	noise   atomic.Int64
	active  atomic.Int64 // calls whose outcome was not reported yet
	opened  time.Time
	lastUse atomic.Int64 // in nanoseconds since opened

	mu       sync.Mutex
	live     []*session
	all      map[*session]struct{} // includes those that are stopping
	queue    []*Running            // ended calls remain until they reach the front
	waiting  int                   // calls in the queues that have not ended
	calls    uint64                // calls received so far
	closing  bool
	cutOff   bool          // calls may no longer wait
	drained  chan struct{} // closed when the pool is closing and no call is left
	drainOne sync.Once

	demand demand

	state    schema.InitializationState
	fault    string // the reason why state is not initialized, a sentence
	tail     string // end of stderr, with fault
	warnings warnings.Spacing
	restarts int
	protocol string
	title    string
	server   string // version of the server
	guess    era
	probes   int // consecutive server/discover requests without an answer
}

// Open returns a pool that opens its sessions in the background. It calls changed after each
// change of Snapshot or Definitions, from any goroutine. changed must be cheap.
func Open(cfg Config, l *launch.Launcher, log *slog.Logger, changed func()) *Pool {
	p := newPool(cfg, log, changed)
	p.start = func() (*Process, error) {
		child, err := l.Start(p.cfg.Spec)
		if err != nil {
			return nil, err
		}
		return &Process{Program: child, Stdin: child.Stdin, Stdout: child.Stdout}, nil
	}
	switch {
	case cfg.Client != nil:
		p.client = cfg.Client
	case cfg.Program != nil:
		p.start = cfg.Program
	case cfg.Native != nil, cfg.Attached:
	case p.cfg.Spec.Type != "stdio":
		p.client = launch.HTTPClient(p.cfg.Spec)
	}
	for _, k := range p.keepers {
		p.work.Go(k.run)
	}
	p.work.Go(p.offers.run)
	return p
}

// newPool returns a pool that has not started any goroutine.
func newPool(cfg Config, log *slog.Logger, changed func()) *Pool {
	cfg.fill()
	p := &Pool{
		cfg: cfg, log: log.With("server", cfg.Spec.ID), changed: changed, version: buildinfo.Read().Version,
		all: make(map[*session]struct{}), drained: make(chan struct{}), large: make(chan struct{}, maxLarge),
		demand: demand{parked: cfg.OnDemand, flip: make(chan struct{})}, state: schema.StateStarting,
	}
	p.offers.pool, p.offers.wake = p, make(chan struct{}, 1)
	p.subscriptions.pool = p
	if cfg.Attached {
		p.programs = newPrograms(cfg.Spec.ID)
		p.fault = p.programs.none
	}
	for i := range cfg.Sessions {
		if cfg.Attached {
			break
		}
		p.keepers = append(p.keepers, &keeper{pool: p, learns: i == 0})
	}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.opened = time.Now()
	return p
}

// Snapshot returns the current state of the server. The caller fills in risk and trust.
func (p *Pool) Snapshot() schema.Server {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := schema.Server{
		ID: p.cfg.Spec.ID, State: p.state, Transport: p.cfg.Spec.Type, Digest: p.offers.digest,
		Slots: p.slotsLocked(), Sessions: len(p.live), Restarts: p.restarts,
		Protocol: p.protocol, Title: p.title, Version: p.server, Timeout: p.cfg.CallTimeout,
	}
	for _, s := range p.live {
		if s.child != nil {
			out.PID = s.child.PID()
			break
		}
		if l, ok := s.link.(*nativeLink); ok {
			out.Slots -= l.stuck(s.load)
		}
	}
	if p.state != schema.StateInitialized {
		out.Error, out.StderrTail = p.fault, p.tail
	}
	if p.programs != nil {
		out.OtherDefinitions = p.programs.waiting
	}
	return out
}

// slotsLocked returns the number of calls that the pool takes concurrently. The caller holds
// p.mu.
func (p *Pool) slotsLocked() int {
	if p.programs == nil {
		return p.cfg.Sessions * p.cfg.InFlight
	}
	n := 0
	for _, s := range p.live {
		n += s.places
	}
	return n
}

// Definitions returns the definitions of the server, unchanged, and their digest. They are nil
// until they were first read. The value is shared and must not be changed.
func (p *Pool) Definitions() (*schema.Definitions, string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.offers.defs, p.offers.digest
}

// InFlight returns the number of running and waiting calls.
func (p *Pool) InFlight() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.waiting
	for s := range p.all {
		n += s.load
	}
	return n
}

// Noise returns the number of lines or messages that violated the protocol.
func (p *Pool) Noise() int64 { return p.noise.Load() }

// Close stops taking calls, lets running calls continue until ctx ends, interrupts the rest,
// stops the sessions and waits for every goroutine. It returns an error if calls were
// interrupted. It may be called more than once.
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
			err = fmt.Errorf("closing the sessions of the server %q: %d calls were interrupted: %w", p.cfg.Spec.ID, n, ctx.Err())
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

// cut ends the remaining calls and returns their number.
func (p *Pool) cut() int64 {
	n := p.active.Load()
	p.mu.Lock()
	p.cutOff, p.live = true, nil
	waiting := p.queue
	p.queue = nil
	var sessions []*session
	for s := range p.all {
		sessions = append(sessions, s)
		waiting = append(waiting, s.takeBound()...)
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

// pause returns the pause before the next attempt after n consecutive failures.
func pause(n int) time.Duration {
	if n >= openBreaker {
		n = math.MaxInt // the longest pause at once: calls are refused in the meantime
	}
	return pauses.Delay(max(n-1, 0))
}
