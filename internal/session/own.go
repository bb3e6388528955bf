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
	mostOwn  = 32              // sessions of callers' own, for one server
	ownIdle  = 2 * time.Minute // that an unused one stays for its caller
	ownSweep = 10 * time.Second
	ownGrow  = 250 * time.Millisecond // without a free session before a caller gets one more
	ownWait  = 30 * time.Second       // for a session; the default of front_door.max_wait
)

// Own holds sessions that belong to one caller each and serve one call at a time,
// so that what the server asks or says by itself is that caller's. They speak the
// legacy era, in which servers do so, and declare what their caller can be asked. A
// session that was used stays for its caller for a while. Calls of one caller wait for
// its session, and it gets more of them, one after the other, only while they keep
// waiting. It is safe for concurrent use; Close ends it.
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
	open    int                // with those that are being opened or closed
	idle    []*Owned           // the longest unused first
	callers map[string]*places // those that have a session or wait for one
	waiting []*ownWaiter       // in the order in which they came
	closed  bool
}

// places are the sessions of one caller.
type places struct {
	open    int  // with those that are being opened
	opening bool // one is
	grown   time.Time
}

// OpenOwn returns the sessions of callers for a server; none is opened yet.
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

// Owned is a session of one caller's own.
type Owned struct {
	*Single
	key   string
	level string
	since time.Time // it is unused
}

// Answer answers a question that the server asked with [Request].Said: object has
// result or error. A number that is not open is ignored. It does not block.
func (o *Owned) Answer(number int64, object []byte) { o.s.asks.answer(number, object) }

// begin opens a session.
func (o *Own) begin(ctx context.Context, c Caller) (*Owned, error) {
	p := newPool(o.cfg, o.log, func() {})
	p.cutOff = true // a call that its session cannot take has nowhere to wait
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

// declared reads what the caller can be asked; what the SDK does not know of it is
// not declared.
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

// setLevel tells the server which log messages are wanted, where it has any. The
// call does without them where that fails.
func (o *Owned) setLevel(ctx context.Context, level string) {
	caps := o.s.about.Capabilities
	if level == "" || level == o.level || caps == nil || caps.Logging == nil { //nolint:staticcheck // deprecated in 2026-07-28, and what the older revisions have
		return
	}
	params := append(rawjson.AppendText([]byte(`{"level":`), level), '}')
	if _, err := o.s.ask(ctx, mcpwire.MethodSetLevel, params); err == nil {
		o.level = level
	}
}

// Release gives a session back. again says that its last call ended with an answer,
// so that nothing of it can reach the next.
func (o *Own) Release(one *Owned, again bool) {
	if again && o.keep(one) {
		return
	}
	one.s.asks.giveUp()
	one.Close()
	o.gone(one.key)
}

// sweep closes sessions that their callers do not use, or that are lost.
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

// drop closes the unused sessions that are meant.
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
			o.gone(one.key)
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

// Close closes the unused sessions and waits for that; those in use are closed by
// [Own.Release], for which the caller waits. It is called once.
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
