// Package worker assembles and runs a worker: it takes calls from the bus, runs
// them on its MCP sessions, and answers.
//
// It promises that every call that reached it is answered exactly once (with a
// result, or with an error that says whether the MCP server may have seen it),
// that a draining worker finishes its calls, and that its child processes end with
// it. It refuses to run a call for a server that it does not hold, a call that
// needs an approval and has no warrant for exactly this call, and a server whose
// risk it cannot honour. A call that must run in a container runs in its own
// container, or not at all.
//
// A worker has no direct contact with callers: it needs core NATS only, and writes
// nothing durable.
//
// It is one package because every kind of request on the bus (calls, cancels, questions
// about earlier calls, lists, changes of servers) is answered from the same state.
package worker

import (
	"cmp"
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

// Served is the configuration of a server for a worker.
type Served struct {
	// Entry is the entry as the operator wrote it.
	Entry   config.ServerEntry
	Session session.Config
	// Adapt opens the source behind the sessions of a server that does not speak MCP; nil for a
	// server that does.
	Adapt func(*slog.Logger) adapt.Source
	// Asks means that the server may ask its callers for input and send them log messages.
	// Calls of callers that can receive these get their own session.
	Asks             bool
	Sandbox          *Sandbox // if nil, its calls cannot run in a container
	Risk             int      // 0, or 1 to 3 as set by the operator
	TrustAnnotations bool
	SafeTools        []string
	// Leases configures processes of the server for single holders. If nil, there are none.
	Leases *Leases
	// SessionIdle is the time without a call after which the session of a single holder with a
	// server on the network is ended. The minimum is 20 minutes.
	SessionIdle time.Duration
}

// Options configures a worker.
type Options struct {
	// Name is the worker's name for operators. Each start appends a random suffix.
	Name    string
	Version string
	Labels  map[string]string
	Conn    *bus.Conn
	Servers []Served
	// Leave asks the process to stop this worker with [Worker.Stop] and to exit, as a signal
	// would. It must not wait for that. It is nil if the process does more than run the worker.
	Leave func()
	// NoProcesses means that the worker starts no program for any server, so that the main
	// function of the process need not call launch.RunReaper.
	NoProcesses bool
	// Parse converts an entry from the API into a server. If nil, the API cannot add servers.
	Parse func(id schema.ServerID, entry json.RawMessage) (Served, error)
	// Policy is this worker's own copy of the policy. If nil, only riskLevel counts.
	Policy *risk.Holder
	// InForce returns the effective configuration of the process, which is announced. If nil, it
	// is not announced.
	InForce func() []schema.InForce
	// Trust holds the keys whose warrants are accepted. Without any, calls that need an approval
	// are refused, and no other setting changes that.
	Trust *warrant.Trust
	// Sandboxes configures the container engine for calls of high risk. Scope is shared by the
	// workers that receive each other's announcements on Conn, and by no others: containers of
	// a dead worker among them are removed.
	Sandboxes settings.Sandboxes
	Scope     string
	// MaxUnfetched is the number of bytes of large results that front doors have not fetched yet,
	// beyond which the worker starts no calls. 0 means 1 GiB, as much as a front door assembles.
	MaxUnfetched int64
	Metrics      *telemetry.Metrics
	// Traces makes the spans. If nil, there are none.
	Traces *telemetry.Traces
	Log    *slog.Logger
}

const defaultMaxUnfetched = 1 << 30

// Worker is a running worker.
type Worker struct {
	id       schema.WorkerID
	o        Options
	log      *slog.Logger
	listener *bus.Listener
	launcher *launch.Launcher
	engine   *lazyEngine
	spent    *warrant.UsedWarrants
	memory   *memory
	brief    *memory
	started  time.Time
	host     string

	mu       sync.RWMutex
	servers  servers
	jobs     map[uint64]*job
	early    earlyCancels
	draining bool
	idle     chan struct{} // signaled when the last job ended while draining

	announcer  *announcer
	attachable attachable
	unhook     func()
	hello      *bus.Watch
	wants      *bus.Watch
	life       context.Context // canceled when the worker has finished its calls
	stop       context.CancelFunc
	wait       sync.WaitGroup
	own        sync.WaitGroup // requests of the fabric itself
}

// Start starts the servers and takes calls. It returns once the worker is registered on the bus.
// The servers become ready in the background, concurrently.
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
	o.MaxUnfetched = cmp.Or(o.MaxUnfetched, defaultMaxUnfetched)
	w := &Worker{
		id: schema.WorkerID(schema.NewID(o.Name)), o: o, log: o.Log, launcher: launcher, started: time.Now().UTC(), host: host,
		jobs: make(map[uint64]*job), idle: make(chan struct{}, 1), spent: warrant.NewUsedWarrants(spentWarrants),
	}
	w.servers = servers{w: w, held: make(map[schema.ServerID]*held), coming: make(map[schema.ServerID]*startingServer)}
	w.announcer = newAnnouncer(w)
	if w.attachable.keys, err = authn.NewKeys(nil); err != nil {
		return nil, err
	}
	w.attachable.w = w
	w.attachable.keys.LogTo(o.Log)
	w.memory, w.brief = newMemory(w.id, w.started), newBriefMemory(w.id, w.started)
	w.engine = newLazyEngine(w)
	w.warnWithoutTrust()
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
		_ = w.engine.close() // the first error counts
		_ = w.closeLauncher()
		return nil, err
	}
	w.unhook = o.Conn.OnReconnect(w.announcer.change)
	w.wait.Go(func() { w.announcer.run(ctx) })
	return w, nil
}

// ID returns the worker's name on the bus.
func (w *Worker) ID() schema.WorkerID { return w.id }

// Report returns the announcement of this worker.
func (w *Worker) Report() schema.Worker {
	var inForce []schema.InForce
	if w.o.InForce != nil {
		inForce = w.o.InForce() // before the lock, because it calls Pending
	}
	w.mu.RLock()
	defer w.mu.RUnlock()
	a := schema.Worker{
		ID: w.id, Name: w.o.Name, Version: w.o.Version, Host: w.host, PID: os.Getpid(), Labels: w.o.Labels,
		Draining: w.draining, InFlight: len(w.jobs), Started: w.started, APIServers: w.o.Parse != nil, Links: w.o.Conn.Links(), InForce: inForce,
		StandingKeys: w.o.Trust.Keys(warrant.Standing),
		Trusts:       &schema.WarrantKeys{People: w.o.Trust.Keys(warrant.People), Caller: w.o.Trust.Keys(warrant.Caller)},
		Servers:      make([]schema.Server, 0, len(w.servers.held)),
	}
	for _, h := range w.servers.held {
		s := h.snapshot()
		s.Risk, s.TrustAnnotations, s.SafeTools, s.Timeout = h.served.Risk, h.served.TrustAnnotations, h.served.SafeTools, h.served.Session.CallTimeout
		s.Asks, s.Added = h.asking != nil, h.added
		h.rules(&s, w.log)
		if s.Pin = h.served.Entry.Pin; s.Pin == schema.PinOff {
			s.Pin = ""
		}
		a.Servers = append(a.Servers, s)
	}
	slices.SortFunc(a.Servers, func(x, y schema.Server) int { return strings.Compare(string(x.ID), string(y.ID)) })
	return a
}

// Apply replaces the servers of the servers file: added ones start, removed ones finish their calls
// and end, changed ones are replaced. A changed server takes calls once it is ready, and the old
// one finishes its calls. If the new entry does not start, the old server keeps running unchanged;
// see [Worker.Pending]. A server is replaced at once if the entry raises the risk level or the old
// server is not ready. Servers that were added over the API are unaffected. Apply returns before
// the servers are ready. It must not run concurrently with itself.
func (w *Worker) Apply(servers []Served) {
	w.servers.apply(servers)
	w.attachable.replace(servers)
}

// Pending returns the entries of the servers file that are not effective yet because their servers
// have not started, one sentence each.
func (w *Worker) Pending() []string { return w.servers.pending() }

// Ready returns nil once every server has left the state starting, else an error with those that are
// missing. It does not wait for servers for attached programs.
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

// Stop drains and ends the worker: it takes no new calls, finishes its calls until ctx ends, stops
// the servers and waits for everything it started.
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
	if closeErr := w.engine.close(); closeErr != nil && err == nil {
		err = closeErr
	}
	if closeErr := w.closeLauncher(); closeErr != nil && err == nil {
		err = closeErr
	}
	return err
}

// partingTime is how long a worker in a cluster still takes calls after it has announced that it
// is draining.
const partingTime = 250 * time.Millisecond

// awaitRouters gives routers time to learn that this worker takes no new calls. A single NATS
// server does not need this, because it reports "no responders" to the sender of each call. In a
// cluster, the sender's server may still see the subscription after it has ended here. The call is
// then lost silently, and its outcome is unknown.
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

// flushWithin limits the time for the last answers to reach NATS.
const flushWithin = 2 * time.Second

// flush sends the last answers. It has its own timeout, because calls and servers may have used up
// the grace period of ctx.
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
		case <-poll.C: // the end of a large transfer is not signaled
		case <-ctx.Done():
			return fmt.Errorf("%d calls were still running at the end of the grace period; their outcome is reported as unknown", n)
		}
	}
}
