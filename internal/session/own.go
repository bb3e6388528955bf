package session

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/callyard/callyard/internal/kit/mcpwire"
	"github.com/callyard/callyard/internal/kit/rawjson"
	"github.com/callyard/callyard/internal/launch"
	"github.com/callyard/callyard/pkg/schema"
)

const (
	maxOwn   = 32              // callers' own sessions, per server
	ownIdle  = 2 * time.Minute // how long an unused session is kept for its caller
	ownSweep = 10 * time.Second
	ownGrow  = 250 * time.Millisecond // wait without a free session before a caller gets one more
	ownWait  = 30 * time.Second       // wait for a session; the default of front_door.max_wait
	ownLevel = 2 * time.Second        // wait for the server to accept a level of log messages
)

// Own holds sessions that belong to one caller each and serve one call at a time, so that
// requests and messages from the server go to that caller. They use the legacy era, in which
// servers send such messages, and declare the capabilities of their caller. An unused session is
// kept for its caller for a while. Calls of one caller wait for its session. The caller gets more
// sessions, one after the other, only while calls keep waiting. Own is safe for concurrent use.
// Close ends it.
type Own struct {
	cfg    Config
	start  func() (*Process, error)
	client *http.Client
	log    *slog.Logger
	stop   chan struct{}
	work   sync.WaitGroup
	grow   time.Duration
	wait   time.Duration

	mu      sync.Mutex
	open    int                // includes those that are being opened or closed
	idle    []*Owned           // least recently used first
	callers map[string]*places // callers that have a session or a place for one
	waiting []*ownWaiter       // in order of arrival
	closed  bool
}

// places counts the sessions of one caller.
type places struct {
	open    int  // includes those that are being opened
	opening bool // one is being opened
	grown   time.Time
}

// OpenOwn returns the callers' own sessions for a server. It opens none yet.
func OpenOwn(cfg Config, l *launch.Launcher, log *slog.Logger) *Own {
	cfg.Sessions, cfg.InFlight, cfg.Queue, cfg.OnDemand = 1, 1, 1, false
	cfg.fill()
	o := &Own{cfg: cfg, log: log.With("server", cfg.Spec.ID), stop: make(chan struct{}), grow: ownGrow, wait: ownWait, callers: make(map[string]*places)}
	if cfg.Spec.Type != "stdio" {
		o.client = launch.HTTPClient(cfg.Spec)
	}
	o.start = func() (*Process, error) {
		child, err := l.Start(o.cfg.Spec)
		if err != nil {
			return nil, err
		}
		return &Process{Program: child, Stdin: child.Stdin, Stdout: child.Stdout}, nil
	}
	o.work.Go(o.sweep)
	return o
}

// Owned is a session that belongs to one caller.
type Owned struct {
	*Single
	key   string
	level string
	since time.Time // when it became unused
}

// Answer answers a question that the server asked with [Request].Said. object has result or
// error. A number that is not open is ignored. It does not block.
func (o *Owned) Answer(number int64, object []byte) { o.s.asks.answer(number, object) }

// begin opens a session.
func (o *Own) begin(ctx context.Context, c Caller) (*Owned, error) {
	p := newPool(o.cfg, o.log, func() {})
	p.cutOff = true // a call that its session cannot take must not wait
	p.offers.defs = &schema.Definitions{}
	p.start, p.client, p.declared = o.start, o.client, declared(c.Capabilities)
	ended := context.AfterFunc(ctx, p.cancel)
	s, _, err := p.attempt(eraLegacy, 0)
	if err != nil {
		ended()
		p.cancel()
		return nil, schema.Errorf(schema.KindServerFailed, "The caller's own session with the server %q could not be opened: %w. The call did not start.", o.cfg.Spec.ID, err).RetryableAfter(0)
	}
	p.mu.Lock()
	p.live = []*session{s}
	p.greeted(s)
	p.mu.Unlock()
	one := &Owned{Single: &Single{pool: p, s: s}, key: c.key()}
	if !ended() {
		one.Close()
		return nil, o.refusal("The session with the server %q was not ready in time; the call did not start.", o.cfg.Spec.ID)
	}
	o.log.Debug("session ready for one caller", "took", time.Since(s.born))
	return one, nil
}

// declared parses the capabilities of the caller. Capabilities that the SDK does not know are not
// declared.
func declared(capabilities []byte) *mcp.ClientCapabilities {
	c := &mcp.ClientCapabilities{}
	if capabilities != nil && json.Unmarshal(capabilities, c) != nil {
		c = &mcp.ClientCapabilities{}
	}
	if rawjson.IsObject(capabilities) {
		rawjson.Members(capabilities, func(key string, value []byte) {
			if key == "roots" && rawjson.IsObject(value) && c.RootsV2 == nil { //nolint:staticcheck // deprecated in 2026-07-28, and what the older revisions have
				c.RootsV2 = &mcp.RootCapabilities{} //nolint:staticcheck // deprecated in 2026-07-28, and what the older revisions have
			}
		})
	}
	return c
}

// setLevel sets the level of the log messages that the server sends, if it supports logging. If
// that fails, the calls of this session run without log messages.
func (o *Owned) setLevel(ctx context.Context, level string) {
	caps := o.s.about.Capabilities
	if level == "" || level == o.level || caps == nil || caps.Logging == nil { //nolint:staticcheck // deprecated in 2026-07-28, and what the older revisions have
		return
	}
	params := append(rawjson.AppendText([]byte(`{"level":`), level), '}')
	asking, cancel := context.WithTimeout(ctx, ownLevel)
	defer cancel()
	_, err := o.s.ask(asking, mcpwire.MethodSetLevel, params)
	if err != nil {
		o.pool.log.Debug("the server did not accept the level of log messages", "level", level, "error", o.pool.plain(err))
	}
	o.level = level // also after an error: asking again with each call would not help
}

// Release returns a session. again means that its last call ended with an answer, so that nothing
// of that call can reach the next one.
func (o *Own) Release(one *Owned, again bool) {
	if again && o.keep(one) {
		return
	}
	one.s.asks.giveUp()
	one.Close()
	o.sessionClosed(one.key)
}

// sweep closes sessions that are lost or that their callers do not use.
func (o *Own) sweep() {
	tick := time.NewTicker(ownSweep)
	defer tick.Stop()
	for {
		select {
		case <-o.stop:
			return
		case now := <-tick.C:
			o.drop(func(one *Owned) bool { return now.Sub(one.since) > ownIdle || one.s.cause() != nil })
		}
	}
}

// drop closes the unused sessions for which meant returns true.
func (o *Own) drop(meant func(*Owned) bool) {
	o.mu.Lock()
	var out, stay []*Owned
	for _, one := range o.idle {
		if meant(one) {
			out = append(out, one)
		} else {
			stay = append(stay, one)
		}
	}
	o.idle = stay
	o.mu.Unlock()
	var closing sync.WaitGroup
	for _, one := range out {
		closing.Go(func() {
			one.Close()
			o.sessionClosed(one.key)
		})
	}
	closing.Wait()
}

// Sessions returns the number of open sessions.
func (o *Own) Sessions() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.open
}

// Close closes the unused sessions and waits for them. [Own.Release] closes those in use, and the
// caller waits for that. Close is called once.
func (o *Own) Close() {
	o.mu.Lock()
	o.closed = true
	o.refuseAllLocked()
	o.mu.Unlock()
	close(o.stop)
	o.work.Wait()
	o.drop(func(*Owned) bool { return true })
	if o.client != nil {
		o.client.CloseIdleConnections()
	}
}
