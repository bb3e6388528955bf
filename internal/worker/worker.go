// Package worker assembles and runs a worker: it takes calls from the bus, runs
// them on the MCP sessions that it holds, and answers.
//
// It promises that every call that reached it is answered exactly once (with a
// result, or with an error that says whether the MCP server may have seen it),
// that a worker which drains finishes what it has, and that its children end
// with it. It refuses to run a call for a server that it does not hold, a call
// that needs an approval and has no warrant for exactly what would run, and a
// server whose risk it cannot honour. What must run in a container runs in one of
// its own, or not at all.
//
// A worker faces no caller: it needs core NATS only, and writes nothing durable.
package worker

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/callyard/callyard/internal/config"
	"github.com/callyard/callyard/internal/launch"
	"github.com/callyard/callyard/internal/launch/adapt"
	"github.com/callyard/callyard/internal/session"
	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/internal/telemetry"
	"github.com/callyard/callyard/internal/warrant"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

// Served is a server that a worker is to hold.
type Served struct {
	// Entry is what the operator wrote.
	Entry   config.ServerEntry
	Session session.Config
	// Adapt makes what is behind the sessions of a server that speaks no MCP; nil
	// for one that does.
	Adapt func(*slog.Logger) adapt.Source
	// Asks says that the server may ask its callers for input and send them log
	// messages: calls of those who can hear it get a session of their own.
	Asks             bool
	Box              *Box // nil: its calls cannot run in a container
	Risk             int  // 0 or 1 to 3, as the operator set it
	TrustAnnotations bool
	SafeTools        []string
}

// Options says what a worker is.
type Options struct {
	// Name is what operators call it; each start adds a random tail.
	Name    string
	Version string
	Labels  map[string]string
	Conn    *bus.Conn
	Servers []Served
	// Parse turns an entry that came over the API into a server; nil switches
	// that off.
	Parse func(id string, entry json.RawMessage) (Served, error)
	// Policy is this worker's own copy of the policy; nil goes by riskLevel alone.
	Policy *risk.Holder
	// InForce says what configuration the process goes by, which is announced; nil: it
	// is not.
	InForce func() []schema.InForce
	// Trust is whose warrants count. Without any, calls that need an approval are
	// refused, and no other setting changes that.
	Trust *warrant.Trust
	// Boxes is the container engine for calls of high risk. Scope is shared by the
	// workers that hear each other on Conn, and by no others: what a dead one of
	// them left on the engine is removed.
	Boxes   settings.Boxes
	Scope   string
	Metrics *telemetry.Metrics
	// Traces makes the spans; nil: there are none.
	Traces *telemetry.Traces
	Log    *slog.Logger
}

// Worker is a running worker.
type Worker struct {
	id       string
	o        Options
	log      *slog.Logger
	listener *bus.Listener
	launcher *launch.Launcher
	dock     *dock
	spent    *warrant.Spent
	memory   *memory
	brief    *memory
	started  time.Time
	host     string

	mu       sync.RWMutex
	held     map[string]*held
	coming   map[string]*arrival // what is to replace them, once it is ready
	jobs     map[uint64]*job
	draining bool
	idle     chan struct{} // a word when the last job ended while draining

	announcing sync.Mutex
	restarts   map[string]int   // guarded by announcing
	noise      map[string]int64 // guarded by announcing
	changed    chan struct{}
	unhook     func()
	hello      *bus.Watch
	wants      *bus.Watch
	life       context.Context // ends when the worker has finished its calls
	stop       context.CancelFunc
	leaving    sync.WaitGroup // one for each server that comes or drains
	wait       sync.WaitGroup
	own        sync.WaitGroup // the fabric's own requests
}

// held is one server of this worker.
type held struct {
	served Served
	pool   *session.Pool  // nil for one that runs in containers only
	boxed  *boxed         // nil for one that has no container
	asking *asking        // nil for one that may not ask its callers
	added  bool           // over the API
	taking sync.WaitGroup // one for each call that is being handed over; added to under the worker's mu
	tools  atomic.Pointer[definitions]
}

// Start begins to hold the servers and to take calls. It returns when the bus
// knows the worker; the servers become ready in the background, side by side.
func Start(o Options) (*Worker, error) {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	launcher, err := launch.New(o.Log)
	if err != nil {
		return nil, fmt.Errorf("preparing to start servers: %w", err)
	}
	w := &Worker{
		id: schema.NewID(o.Name), o: o, log: o.Log, launcher: launcher, started: time.Now().UTC(), host: host,
		held: make(map[string]*held), coming: make(map[string]*arrival), jobs: make(map[uint64]*job),
		restarts: make(map[string]int), noise: make(map[string]int64), changed: make(chan struct{}, 1), idle: make(chan struct{}, 1),
		spent: warrant.NewSpent(spentWarrants),
	}
	w.memory, w.brief = newMemory(w.id, w.started), newBriefMemory(w.id, w.started)
	w.dock = newDock(w)
	w.sayTrust()
	for _, s := range o.Servers {
		w.holdLocked(s, false)
	}
	ctx, stop := context.WithCancel(context.Background())
	w.life, w.stop = ctx, stop
	if w.listener, err = o.Conn.Listen(w.id, w); err == nil {
		w.hello, err = o.Conn.WatchHello(w.change)
	}
	if err == nil {
		w.wants, err = o.Conn.WatchWants(w.want)
	}
	if err != nil {
		stop()
		w.closePools(context.Background())
		_ = w.dock.close() // the first error counts
		_ = launcher.Close()
		return nil, err
	}
	w.unhook = o.Conn.OnReconnect(w.change)
	w.wait.Go(func() { w.announce(ctx) })
	return w, nil
}

// ID is the worker's name on the bus.
func (w *Worker) ID() string { return w.id }

// holdLocked begins to hold a server.
func (w *Worker) holdLocked(s Served, added bool) *held {
	h := w.openServer(s, added, w.change)
	w.held[s.Session.Spec.ID] = h
	return h
}

// openServer starts a server, which takes no calls before it is held. changed is called
// after each change of its state.
func (w *Worker) openServer(s Served, added bool, changed func()) *held {
	s.Session.Traces = w.o.Traces
	h := &held{served: s, added: added}
	if s.Box != nil {
		h.boxed = w.openBoxed(&h.served, changed)
	}
	if s.Box == nil || !s.Box.Only {
		if s.Adapt != nil {
			s.Session.Client = adapt.Client(s.Adapt(w.log))
		}
		if s.Asks {
			s.Session.Declares = []byte(allAsked)
		}
		s.Session.Updated = w.updated(s.Session.Spec.ID)
		h.pool = session.Open(s.Session, w.launcher, w.log, changed)
		if s.Asks && s.Adapt == nil {
			h.asking = w.openAsking(&s)
		}
	}
	return h
}

// change asks for an announcement soon; many changes share one.
func (w *Worker) change() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// settle is how long changes are gathered before they are announced: longer with
// many servers, whose announcement is large and which change much while they
// start.
func (w *Worker) settle() time.Duration {
	w.mu.RLock()
	defer w.mu.RUnlock()
	return 10*time.Millisecond + min(time.Duration(len(w.held))*200*time.Microsecond, 200*time.Millisecond)
}

func (w *Worker) announce(ctx context.Context) {
	tick := time.NewTicker(bus.AnnounceEvery)
	defer tick.Stop()
	for {
		w.announceOnce()
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			w.memory.sweep(now)
			w.brief.sweep(now)
		case <-w.changed:
			select {
			case <-ctx.Done():
				return
			case <-time.After(w.settle()):
			}
		}
	}
}

func (w *Worker) announceOnce() {
	w.announcing.Lock()
	defer w.announcing.Unlock()
	a := w.Report()
	for i := range a.Servers {
		s := &a.Servers[i]
		w.measure(s)
		if a.Draining {
			continue
		}
		if s.State != schema.StateInitialized {
			w.listener.Withdraw(s.ID)
		} else if err := w.listener.Offer(s.ID); err != nil {
			w.log.Warn("offering a server", "error", err)
		}
	}
	if err := w.o.Conn.Announce(&a); err != nil {
		w.log.Debug("not announced", "error", err)
	}
}

// measure puts what is new of a server into the metrics; announcing is locked.
func (w *Worker) measure(s *schema.Server) {
	w.o.Metrics.SetSessions(s.ID, s.Sessions)
	w.o.Metrics.SetServerUp(s.ID, s.State == schema.StateInitialized)
	for ; w.restarts[s.ID] < s.Restarts; w.restarts[s.ID]++ {
		w.o.Metrics.SessionRestarted(s.ID)
	}
	w.mu.RLock()
	h := w.held[s.ID]
	w.mu.RUnlock()
	if h == nil {
		return // removed at this moment
	}
	if h.boxed != nil {
		h.boxed.measure()
	}
	if n := h.noise(); n > w.noise[s.ID] {
		w.o.Metrics.StdoutNoise(s.ID, n-w.noise[s.ID])
		w.noise[s.ID] = n
	}
}

// Report is what this worker announces.
func (w *Worker) Report() schema.Worker {
	var inForce []schema.InForce
	if w.o.InForce != nil {
		inForce = w.o.InForce() // which asks for Pending, so before the lock
	}
	w.mu.RLock()
	defer w.mu.RUnlock()
	a := schema.Worker{
		ID: w.id, Name: w.o.Name, Version: w.o.Version, Host: w.host, PID: os.Getpid(), Labels: w.o.Labels,
		Draining: w.draining, InFlight: len(w.jobs), Started: w.started, APIServers: w.o.Parse != nil, Links: w.o.Conn.Links(), InForce: inForce,
		StandingKeys: w.o.Trust.Keys(warrant.Standing),
		Servers:      make([]schema.Server, 0, len(w.held)),
	}
	for _, h := range w.held {
		s := h.snapshot()
		s.Risk, s.TrustAnnotations, s.SafeTools, s.Timeout = h.served.Risk, h.served.TrustAnnotations, h.served.SafeTools, h.served.Session.CallTimeout
		s.Asks = h.asking != nil
		a.Servers = append(a.Servers, s)
	}
	sortServers(a.Servers)
	return a
}

// Ready returns nil when every server has left the state starting, else what is
// still missing.
func (w *Worker) Ready() error {
	if err := w.o.Conn.Ready(); err != nil {
		return err
	}
	var starting []string
	for _, s := range w.Report().Servers {
		if s.State == schema.StateStarting {
			starting = append(starting, s.ID)
		}
	}
	if len(starting) > 0 {
		return fmt.Errorf("still starting: %s", strings.Join(starting, ", "))
	}
	return nil
}

// Stop drains and ends the worker: it takes nothing new, finishes what it has
// until ctx ends, stops the servers and waits for everything it started.
func (w *Worker) Stop(ctx context.Context) error {
	w.mu.Lock()
	w.draining = true
	w.mu.Unlock()
	w.announceOnce()
	w.listener.StopCalls()
	err := w.finish(ctx)
	w.unhook()
	w.hello.Stop()
	w.wants.Stop()
	w.stop()
	w.wait.Wait()
	w.leaving.Wait()
	w.closePools(ctx)
	w.own.Wait()
	w.listener.Close()
	if down := w.o.Conn.Ready(); down != nil {
		w.log.Warn("stopped without NATS; routers report what was under way as unknown", "error", down)
	} else if flushErr := w.o.Conn.Flush(ctx); flushErr != nil && err == nil {
		err = fmt.Errorf("sending the last answers: %w", flushErr)
	}
	if closeErr := w.dock.close(); closeErr != nil && err == nil {
		err = closeErr
	}
	if closeErr := w.launcher.Close(); closeErr != nil && err == nil {
		err = closeErr
	}
	return err
}

// finish waits for the running calls and for large results to be fetched.
func (w *Worker) finish(ctx context.Context) error {
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	for {
		w.mu.RLock()
		n := len(w.jobs)
		w.mu.RUnlock()
		if n == 0 && w.listener.Transfers() == 0 {
			return nil
		}
		select {
		case <-w.idle:
		case <-poll.C: // a reader of a large result tells nobody when it is done
		case <-ctx.Done():
			return fmt.Errorf("%d calls were still running at the end of the grace time; their outcome is reported as unknown", n)
		}
	}
}

func (w *Worker) closePools(ctx context.Context) {
	w.mu.Lock()
	all := slices.Collect(maps.Values(w.held))
	w.mu.Unlock()
	var closing sync.WaitGroup
	for _, h := range all {
		closing.Go(func() {
			if err := h.close(ctx); err != nil {
				w.log.Warn("closing a server", "error", err)
			}
		})
	}
	closing.Wait()
}
