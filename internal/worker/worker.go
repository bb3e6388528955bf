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
//
// It is one package because every kind of request on the bus (calls, cancels, questions
// about earlier calls, lists, changes of servers) is answered from the same state.
package worker

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/callyard/callyard/internal/authn"
	"github.com/callyard/callyard/internal/config"
	"github.com/callyard/callyard/internal/kit/sleep"
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
	Sandbox          *Sandbox // nil: its calls cannot run in a container
	Risk             int      // 0 or 1 to 3, as the operator set it
	TrustAnnotations bool
	SafeTools        []string
	// Leases says how processes of the server are kept for single holders; nil: none are.
	Leases *Leases
	// SessionIdle is how long, at a server that is reached over the network, the session of a
	// single holder may be without a call before it is ended; the least is 20 minutes.
	SessionIdle time.Duration
}

// Options says what a worker is.
type Options struct {
	// Name is what operators call it; each start adds a random tail.
	Name    string
	Version string
	Labels  map[string]string
	Conn    *bus.Conn
	Servers []Served
	// Leave asks the process to stop this worker with [Worker.Stop] and to end, as a signal would.
	// It must not wait for that. nil: the process does more than run the worker.
	Leave func()
	// NoProcesses says that no server is a program that the worker starts, so that the
	// main of the process need not call launch.RunReaper.
	NoProcesses bool
	// Parse turns an entry that came over the API into a server; nil switches
	// that off.
	Parse func(id schema.ServerID, entry json.RawMessage) (Served, error)
	// Policy is this worker's own copy of the policy; nil goes by riskLevel alone.
	Policy *risk.Holder
	// InForce says what configuration the process goes by, which is announced; nil: it
	// is not.
	InForce func() []schema.InForce
	// Trust is whose warrants count. Without any, calls that need an approval are
	// refused, and no other setting changes that.
	Trust *warrant.Trust
	// Sandboxes is the container engine for calls of high risk. Scope is shared by the
	// workers that hear each other on Conn, and by no others: what a dead one of
	// them left on the engine is removed.
	Sandboxes settings.Sandboxes
	Scope     string
	Metrics   *telemetry.Metrics
	// Traces makes the spans; nil: there are none.
	Traces *telemetry.Traces
	Log    *slog.Logger
}

// Worker is a running worker.
type Worker struct {
	id       schema.WorkerID
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
	servers  servers
	jobs     map[uint64]*job
	draining bool
	idle     chan struct{} // a word when the last job ended while draining

	announcer  *announcer
	attachable attachable
	unhook     func()
	hello      *bus.Watch
	wants      *bus.Watch
	life       context.Context // ends when the worker has finished its calls
	stop       context.CancelFunc
	wait       sync.WaitGroup
	own        sync.WaitGroup // the fabric's own requests
}

// Start begins to hold the servers and to take calls. It returns when the bus
// knows the worker; the servers become ready in the background, side by side.
func Start(o Options) (*Worker, error) {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	var launcher *launch.Launcher
	if !o.NoProcesses {
		if launcher, err = launch.New(o.Log); err != nil {
			return nil, fmt.Errorf("preparing to start servers: %w", err)
		}
	}
	w := &Worker{
		id: schema.WorkerID(schema.NewID(o.Name)), o: o, log: o.Log, launcher: launcher, started: time.Now().UTC(), host: host,
		jobs: make(map[uint64]*job), idle: make(chan struct{}, 1), spent: warrant.NewSpent(spentWarrants),
	}
	w.servers = servers{w: w, held: make(map[schema.ServerID]*held), coming: make(map[schema.ServerID]*arrival)}
	w.announcer = newAnnouncer(w)
	if w.attachable.keys, err = authn.NewKeys(nil); err != nil {
		return nil, err
	}
	w.attachable.w = w
	w.attachable.keys.LogTo(o.Log)
	w.memory, w.brief = newMemory(w.id, w.started), newBriefMemory(w.id, w.started)
	w.dock = newDock(w)
	w.sayTrust()
	for _, s := range o.Servers {
		w.servers.holdLocked(s, false)
	}
	w.attachable.replace(o.Servers)
	ctx, stop := context.WithCancel(context.Background())
	w.life, w.stop = ctx, stop
	if w.listener, err = o.Conn.Listen(w.id, w); err == nil {
		w.hello, err = o.Conn.WatchHello(w.announcer.change)
	}
	if err == nil {
		w.wants, err = o.Conn.WatchWants(w.want)
	}
	if err != nil {
		stop()
		w.servers.close(context.Background())
		_ = w.dock.close() // the first error counts
		_ = w.closeLauncher()
		return nil, err
	}
	w.unhook = o.Conn.OnReconnect(w.announcer.change)
	w.wait.Go(func() { w.announcer.run(ctx) })
	return w, nil
}

// ID is the worker's name on the bus.
func (w *Worker) ID() schema.WorkerID { return w.id }

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
		Servers:      make([]schema.Server, 0, len(w.servers.held)),
	}
	for _, h := range w.servers.held {
		s := h.snapshot()
		s.Risk, s.TrustAnnotations, s.SafeTools, s.Timeout = h.served.Risk, h.served.TrustAnnotations, h.served.SafeTools, h.served.Session.CallTimeout
		s.Asks = h.asking != nil
		h.rules(&s, w.log)
		if s.Pin = h.served.Entry.Pin; s.Pin == schema.PinOff {
			s.Pin = ""
		}
		a.Servers = append(a.Servers, s)
	}
	slices.SortFunc(a.Servers, func(x, y schema.Server) int { return strings.Compare(string(x.ID), string(y.ID)) })
	return a
}

// Apply makes servers those of the servers file: added ones start, removed ones finish
// their calls and end, changed ones are replaced. A changed server takes calls once it is
// ready, and the old one finishes those that it has; one whose new entry does not start
// keeps running as it was, see [Worker.Pending]. Where the entry raises the risk level, or
// the old server is not ready, it is replaced at once. Servers that came over the API are
// left alone. It returns before the servers are ready; two of them must not run at once.
func (w *Worker) Apply(servers []Served) {
	w.servers.apply(servers)
	w.attachable.replace(servers)
}

// Pending returns the entries of the servers file that are not in force yet because their
// servers have not started, one sentence each.
func (w *Worker) Pending() []string { return w.servers.pending() }

// Ready returns nil when every server has left the state starting, else what is
// still missing. A server that programs attach to is not waited for.
func (w *Worker) Ready() error {
	if err := w.o.Conn.Ready(); err != nil {
		return err
	}
	var starting []string
	for _, s := range w.Report().Servers {
		if s.State == schema.StateStarting && s.Transport != config.TypeAttach {
			starting = append(starting, string(s.ID))
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
	w.announcer.announce()
	w.awaitRouters(ctx)
	w.listener.StopCalls()
	err := w.finish(ctx)
	w.unhook()
	w.hello.Stop()
	w.wants.Stop()
	w.stop()
	w.wait.Wait()
	w.servers.leaving.Wait()
	w.servers.close(ctx)
	w.own.Wait()
	w.listener.Close()
	if down := w.o.Conn.Ready(); down != nil {
		w.log.Warn("stopped without NATS; front doors report the running calls as unknown", "error", down)
	} else if flushErr := w.flush(ctx); flushErr != nil && err == nil {
		err = fmt.Errorf("sending the last answers: %w", flushErr)
	}
	if closeErr := w.dock.close(); closeErr != nil && err == nil {
		err = closeErr
	}
	if closeErr := w.closeLauncher(); closeErr != nil && err == nil {
		err = closeErr
	}
	return err
}

// partingTime is how long a worker of a cluster still takes calls after it has announced
// that it leaves.
const partingTime = 250 * time.Millisecond

// awaitRouters gives the routers time to hear that this worker takes nothing new. A single
// NATS server needs none: it tells the sender of each call that nobody listens. In a cluster
// the sender's server may still see the subscription that has just ended here, and the call
// is lost without a word; then only "outcome unknown" can be said of it.
func (w *Worker) awaitRouters(ctx context.Context) {
	if !w.o.Conn.Clustered() {
		return
	}
	sleep.For(partingTime, ctx.Done())
}

func (w *Worker) closeLauncher() error {
	if w.launcher == nil {
		return nil
	}
	return w.launcher.Close()
}

// flushWithin bounds how long the last answers take to reach NATS.
const flushWithin = 2 * time.Second

// flush sends the last answers. The grace of ctx was for calls and servers, and they may
// have used all of it.
func (w *Worker) flush(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushWithin)
	defer cancel()
	return w.o.Conn.Flush(ctx)
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
			return fmt.Errorf("%d calls were still running at the end of the grace period; their outcome is reported as unknown", n)
		}
	}
}
