package dispatch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/callyard/callyard/internal/credential"
	"github.com/callyard/callyard/internal/telemetry"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

// Options bounds what the router does. Zero fields get the defaults named.
type Options struct {
	// MaxQueue is how many interactive calls may wait for one server (10,000). Who
	// sends bulk calls bounds how many it has under way itself.
	MaxQueue int
	// MaxWait is how long an interactive call may wait for a slot (30 s).
	MaxWait time.Duration
	// WorkerWait is how long a call waits when no live worker has its server,
	// so that a restarting worker is not an error (3 s).
	WorkerWait time.Duration
	// CallTimeout is for calls that name none (60 s).
	CallTimeout time.Duration
	// Weight is a principal's share of the slots while calls wait, against the
	// others that wait for the same server: 1 to 1000; nil: 1 for all. It is
	// called under a lock, when the first call of a principal begins to wait.
	Weight func(principal string) int
	// TenantWeight is a tenant's share, likewise; tenants take turns before principals do.
	// nil: tenants are not kept apart, and only principals take turns.
	TenantWeight func(tenant schema.TenantID) int
	// Region is where this router runs: workers of the same region go first, others
	// take what these have no room for. Empty: all are alike.
	Region string
	// Credentials are those of people at MCP servers, which workers ask for during a call;
	// nil: there are none.
	Credentials *credential.Book
	// Unpaced lets batches run as fast as they can while single calls come.
	Unpaced bool
	// Metrics counts the attempts that rules for retries make; nil: they are not counted.
	Metrics *telemetry.Metrics
	// Traces makes a span of each attempt; nil: there are none.
	Traces *telemetry.Traces
}

func (o *Options) weights() *weights { return &weights{o.Weight, o.TenantWeight} }

func (o *Options) fill() {
	if o.MaxQueue == 0 {
		o.MaxQueue = 10_000
	}
	if o.MaxWait == 0 {
		o.MaxWait = 30 * time.Second
	}
	if o.WorkerWait == 0 {
		o.WorkerWait = 3 * time.Second
	}
	if o.CallTimeout == 0 {
		o.CallTimeout = 60 * time.Second
	}
}

const (
	// replyGrace is how much longer than the worker the router waits: the worker
	// ends a call at its deadline and says what it knows.
	replyGrace = 2 * time.Second
	// probeEvery and probeAfter say when a worker that owes answers is asked
	// whether it is still there.
	probeEvery = 250 * time.Millisecond
	probeAfter = 500 * time.Millisecond
	// probeGrace is how long workers have to reconnect to NATS after an outage: a router
	// that reconnects faster must not take them for lost.
	probeGrace = 3 * time.Second
)

var (
	errNoOther  = errors.New("dispatch: no other worker to try")
	errNoWorker = errors.New("dispatch: no worker is known")
)

// anyWorker stands for whoever hears a call to a server. It is the way when no
// live worker of the server is known, its announcement being on its way or lost.
const anyWorker = ""

// Router sends calls to workers. All methods are safe for concurrent use.
type Router struct {
	conn    *bus.Conn
	client  *bus.Client
	cancels *bus.Watch
	log     *slog.Logger
	limits  Options
	flights flights
	rate    rateController
	guard   atomic.Pointer[Guard]
	// listeners hear of canceled calls.
	listeners listeners

	mu      sync.RWMutex
	routes  map[schema.ServerID]*route
	workers map[schema.WorkerID]*worker
	silent  map[schema.WorkerID]time.Time // workers that may be disconnected only: until when they are awaited
	routers int

	life   context.Context // ends when the router is closed
	stop   context.CancelFunc
	unhook func()
	again  atomicTime // when the connection stood again last
	lost   inquirer
	wait   sync.WaitGroup
}

// worker is what the router keeps about one worker.
type worker struct {
	announced schema.Worker
	heard     atomicTime // last reply or announcement
	owed      atomicCount
	stale     atomic.Bool  // a lane was closed here: the next announcement opens it
	remote    atomic.Bool  // it runs in another region
	missed    atomic.Int64 // since when it does not listen, in Unix nanoseconds; 0: it does
}

// New returns a router named id on the connection. Close ends it.
func New(conn *bus.Conn, id string, o Options, log *slog.Logger) (*Router, error) {
	client, err := conn.NewClient(id)
	if err != nil {
		return nil, fmt.Errorf("opening the router: %w", err)
	}
	o.fill()
	ctx, stop := context.WithCancel(context.Background())
	r := &Router{conn: conn, client: client, log: log, limits: o, routes: make(map[schema.ServerID]*route), workers: make(map[schema.WorkerID]*worker), silent: make(map[schema.WorkerID]time.Time), routers: 1, life: ctx, stop: stop}
	r.lost = inquirer{r, make(chan schema.WorkerID, movedKept)}
	if r.cancels, err = conn.WatchCancels(r.canceled); err != nil {
		stop()
		return nil, errors.Join(fmt.Errorf("opening the router: %w", err), client.Close())
	}
	again := make(chan struct{}, 1)
	r.unhook = conn.OnReconnect(func() {
		r.again.set(time.Now())
		select {
		case again <- struct{}{}:
		default:
		}
	})
	r.wait.Go(func() { r.probe(ctx) })
	r.wait.Go(func() { r.lost.run(ctx, again) })
	return r, nil
}

// Close stops the router. The caller waits for its calls first.
func (r *Router) Close() error {
	r.stop()
	r.unhook()
	r.cancels.Stop()
	r.wait.Wait()
	return r.client.Close()
}

// SetWorker takes in what a worker announced. Most announcements say nothing new
// and are no work, however many servers they list.
func (r *Router) SetWorker(w *schema.Worker) {
	r.mu.RLock()
	known := r.workers[w.ID]
	same := known != nil && sameOffer(&known.announced, w)
	r.mu.RUnlock()
	if same && !known.stale.Swap(false) {
		known.heard.set(time.Now())
		return
	}
	r.mu.Lock()
	old := r.workers[w.ID]
	if old == nil {
		old = &worker{}
		r.workers[w.ID] = old
	}
	before := old.announced
	if _, back := r.silent[w.ID]; back || known != nil && w.Links > before.Links {
		delete(r.silent, w.ID)
		r.lost.later(w.ID)
	}
	old.announced = *w
	old.remote.Store(r.limits.isRemote(w))
	old.heard.set(time.Now())
	touched := r.applyLocked(&before, w)
	r.mu.Unlock()
	settle(touched)
}

// settle does what was decided for routes while the router was locked.
func settle(touched []*route) {
	for _, rt := range touched {
		rt.settle()
	}
}

// sameOffer says whether both announcements mean the same slots.
func sameOffer(a, b *schema.Worker) bool {
	return a.Draining == b.Draining && a.Links == b.Links && slices.EqualFunc(a.Servers, b.Servers, func(x, y schema.Server) bool {
		return x.ID == y.ID && x.State == y.State && x.Slots == y.Slots
	})
}

// applyLocked returns the routes that it touched, to be settled.
func (r *Router) applyLocked(before, w *schema.Worker) (touched []*route) {
	has := make(map[schema.ServerID]bool, len(w.Servers))
	for i := range w.Servers {
		s := &w.Servers[i]
		has[s.ID] = true
		open := !w.Draining && s.State == schema.StateInitialized && s.Slots > 0
		rt := r.routeLocked(s.ID)
		rt.set(w.ID, r.workers[w.ID], r.share(s.Slots), open)
		touched = append(touched, rt)
	}
	for i := range before.Servers {
		if id := before.Servers[i].ID; !has[id] {
			rt := r.routeLocked(id)
			rt.drop(w.ID)
			touched = append(touched, rt)
		}
	}
	return touched
}

// share is this router's part of a worker's slots.
func (r *Router) share(slots int) int { return max(1, (slots+r.routers-1)/r.routers) }

func (r *Router) routeLocked(server schema.ServerID) *route {
	rt := r.routes[server]
	if rt == nil {
		rt = &route{server: server, limits: &r.limits}
		r.routes[server] = rt
	}
	return rt
}

// SetRouters says how many routers are alive, this one included.
func (r *Router) SetRouters(n int) {
	r.mu.Lock()
	var touched []*route
	if n = max(n, 1); n != r.routers {
		r.routers = n
		for _, w := range r.workers {
			touched = append(touched, r.applyLocked(&w.announced, &w.announced)...)
		}
	}
	r.mu.Unlock()
	settle(touched)
}

// RemoveWorker forgets a worker that has fallen silent and ends the calls that are
// under way there. In a cluster it may only be disconnected: calls whose end it remembers,
// and that no other may run, are then given up later. See returnGrace.
func (r *Router) RemoveWorker(id schema.WorkerID) {
	held := r.conn.Clustered()
	r.mu.Lock()
	w := r.workers[id]
	delete(r.workers, id)
	if held {
		r.silent[id] = time.Now().Add(returnGrace)
	}
	var touched []*route
	if w != nil {
		for i := range w.announced.Servers {
			rt := r.routeLocked(w.announced.Servers[i].ID)
			rt.drop(id)
			touched = append(touched, rt)
		}
	}
	r.mu.Unlock()
	settle(touched)
	if held {
		r.client.LostOf(id, func(to bus.Receiver) bool { return !awaited(to) })
		return
	}
	r.client.Lost(id)
}

// giveUp ends the calls of workers that were awaited and did not reconnect.
func (r *Router) giveUp(now time.Time) {
	var lost []schema.WorkerID
	r.mu.Lock()
	for id, until := range r.silent {
		if now.After(until) {
			delete(r.silent, id)
			lost = append(lost, id)
		}
	}
	r.mu.Unlock()
	for _, id := range lost {
		r.client.Lost(id)
	}
}

// Load returns what waits and runs for each known server.
func (r *Router) Load() map[schema.ServerID]Load {
	r.mu.RLock()
	defer r.mu.RUnlock()
	loads := make(map[schema.ServerID]Load, len(r.routes))
	for id, rt := range r.routes {
		loads[id] = rt.load()
	}
	return loads
}

// probe asks workers that owe answers and are silent whether they are there, and
// ends asynchronous calls whose answers are overdue.
func (r *Router) probe(ctx context.Context) {
	tick := time.NewTicker(probeEvery)
	defer tick.Stop()
	var asking sync.WaitGroup
	defer asking.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := time.Now()
		for _, p := range r.flights.overdue(now.UnixNano()) {
			p.expire()
		}
		r.giveUp(now)
		if now.Sub(r.again.get()) < probeGrace {
			continue
		}
		r.mu.RLock()
		var silent []schema.WorkerID
		for id, w := range r.workers {
			if w.owed.get() > 0 && now.Sub(w.heard.get()) > probeAfter {
				w.heard.set(now) // ask again after the same time
				silent = append(silent, id)
			}
		}
		r.mu.RUnlock()
		for _, id := range silent {
			asking.Go(func() { r.lost.look(ctx, id) })
		}
	}
}

// lookup returns the route of a server and the worker record of an id.
func (r *Router) lookup(server schema.ServerID) *route {
	r.mu.RLock()
	rt := r.routes[server]
	r.mu.RUnlock()
	if rt == nil {
		r.mu.Lock()
		rt = r.routeLocked(server)
		r.mu.Unlock()
	}
	return rt
}

// unready returns the error of a live worker that has the server and cannot run it, "" if there is
// none: of several workers, that of the first by name.
func (r *Router) unready(server schema.ServerID) string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	var of schema.WorkerID
	reason := ""
	for id, w := range r.workers {
		for i := range w.announced.Servers {
			s := &w.announced.Servers[i]
			if s.ID == server && s.State != schema.StateInitialized && s.Error != "" && (of == "" || id < of) {
				of, reason = id, s.Error
			}
		}
	}
	return reason
}

func (r *Router) worker(id schema.WorkerID) *worker {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.workers[id]
}
