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

// Options configures a router. Fields that are zero get the defaults in parentheses.
type Options struct {
	// MaxQueue limits the interactive calls that wait for one server (10,000). Senders of bulk
	// calls limit their own calls in flight.
	MaxQueue int
	// MaxWait limits the time that an interactive call waits for a slot (30 s).
	MaxWait time.Duration
	// WorkerWait limits the wait if no live worker has the server, so that a restarting worker
	// causes no error (3 s).
	WorkerWait time.Duration
	// CallTimeout is the timeout of calls that specify none (60 s).
	CallTimeout time.Duration
	// Weight returns a principal's share of the slots, from 1 to 1000, relative to the other
	// principals that wait for the same server. If nil, all have 1. It is called under a lock, when
	// the first call of a principal begins to wait.
	Weight func(principal string) int
	// TenantWeight returns a tenant's share in the same way. Tenants take turns before principals
	// do. If nil, tenants are not separated, and only principals take turns.
	TenantWeight func(tenant schema.TenantID) int
	// Region is the region of this router. Workers of the same region are preferred, and others
	// are used if those have no free slots. If empty, all workers are equal.
	Region string
	// Credentials holds the credentials of people at MCP servers, which workers request during a
	// call. If nil, there are none.
	Credentials *credential.Book
	// Unpaced disables the rate limit of batches while single calls run.
	Unpaced bool
	// Metrics counts the retries by rules. If nil, they are not counted.
	Metrics *telemetry.Metrics
	// Traces creates a span for each attempt. If nil, there are no spans.
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
	// replyGrace is the time that the router waits longer than the worker, because the worker ends
	// a call at its deadline and reports its outcome.
	replyGrace = 2 * time.Second
	// probeEvery is the interval of the probe, and probeAfter the silence after which it checks
	// whether a worker that owes answers still listens.
	probeEvery = 250 * time.Millisecond
	probeAfter = 500 * time.Millisecond
	// probeGrace is the time that workers have to reconnect to NATS after an outage. A router that
	// reconnects faster must not consider them lost.
	probeGrace = 3 * time.Second
)

var (
	errNoOther  = errors.New("dispatch: no other worker to try")
	errNoWorker = errors.New("dispatch: no worker is known")
)

// anyWorker addresses any worker that receives a call to a server. It is used if no live worker of
// the server is known, because its announcement may be delayed or lost.
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
	// listeners are notified of canceled calls.
	listeners listeners

	mu      sync.RWMutex
	routes  map[schema.ServerID]*route
	workers map[schema.WorkerID]*worker
	silent  map[schema.WorkerID]time.Time // workers that may only be disconnected, with the end of the wait for them
	routers int

	life   context.Context // ends when the router is closed
	stop   context.CancelFunc
	unhook func()
	clock  clock
	again  atomic.Int64 // when it last reconnected; 0 means never
	lost   inquirer
	wait   sync.WaitGroup
}

// worker is the router's record of one worker.
type worker struct {
	announced schema.Worker
	heard     atomic.Int64 // last reply or announcement
	owed      atomicCount
	stale     atomic.Bool  // a lane was closed here; the next announcement opens it
	remote    atomic.Bool  // runs in another region
	missed    atomic.Int64 // when it was first found not to listen; 0 if it listens
}

// New returns a router with the given id on the connection. Close stops it.
func New(conn *bus.Conn, id string, o Options, log *slog.Logger) (*Router, error) {
	client, err := conn.NewClient(id)
	if err != nil {
		return nil, fmt.Errorf("opening the router: %w", err)
	}
	o.fill()
	ctx, stop := context.WithCancel(context.Background())
	r := &Router{conn: conn, client: client, log: log, limits: o, routes: make(map[schema.ServerID]*route), workers: make(map[schema.WorkerID]*worker), silent: make(map[schema.WorkerID]time.Time), routers: 1, life: ctx, stop: stop, clock: clock{time.Now()}}
	r.lost = inquirer{r, make(chan schema.WorkerID, movedKept)}
	if r.cancels, err = conn.WatchCancels(r.canceled); err != nil {
		stop()
		return nil, errors.Join(fmt.Errorf("opening the router: %w", err), client.Close())
	}
	again := make(chan struct{}, 1)
	r.unhook = conn.OnReconnect(func() {
		r.again.Store(r.clock.now())
		select {
		case again <- struct{}{}:
		default:
		}
	})
	r.wait.Go(func() { r.probe(ctx) })
	r.wait.Go(func() { r.lost.run(ctx, again) })
	return r, nil
}

// Close stops the router. The caller must wait for its calls first.
func (r *Router) Close() error {
	r.stop()
	r.unhook()
	r.cancels.Stop()
	r.wait.Wait()
	return r.client.Close()
}

// SetWorker handles the announcement of a worker. Most announcements contain no change and are
// cheap, even with many servers.
func (r *Router) SetWorker(w *schema.Worker) {
	r.mu.RLock()
	known := r.workers[w.ID]
	same := known != nil && sameOffer(&known.announced, w)
	r.mu.RUnlock()
	if same && !known.stale.Swap(false) {
		known.heard.Store(r.clock.now())
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
		r.lost.askSoon(w.ID)
	}
	old.announced = *w
	old.remote.Store(r.limits.isRemote(w))
	old.heard.Store(r.clock.now())
	touched := r.applyLocked(&before, w)
	r.mu.Unlock()
	settle(touched)
}

// settle does the work that was decided on while the router was locked.
func settle(touched []*route) {
	for _, rt := range touched {
		rt.settle()
	}
}

// sameOffer reports whether both announcements offer the same slots.
func sameOffer(a, b *schema.Worker) bool {
	return a.Draining == b.Draining && a.Links == b.Links && slices.EqualFunc(a.Servers, b.Servers, func(x, y schema.Server) bool {
		return x.ID == y.ID && x.State == y.State && x.Slots == y.Slots
	})
}

// applyLocked applies an announcement and returns the changed routes, which must be settled.
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

// share returns this router's share of a worker's slots.
func (r *Router) share(slots int) int { return max(1, (slots+r.routers-1)/r.routers) }

func (r *Router) routeLocked(server schema.ServerID) *route {
	rt := r.routes[server]
	if rt == nil {
		rt = &route{server: server, limits: &r.limits}
		r.routes[server] = rt
	}
	return rt
}

// SetRouters sets the number of live routers, including this one.
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

// RemoveWorker removes a worker that has fallen silent and ends its calls in flight. In a cluster the
// worker may only be disconnected, and deaf means that NATS delivers nothing here. In both cases calls
// whose outcome the worker remembers, and that no other worker may run, end later; see returnGrace.
func (r *Router) RemoveWorker(id schema.WorkerID, deaf bool) {
	held := deaf || r.conn.Clustered()
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
		r.client.LostOf(id, func(to bus.Receiver) bool { return !waitsForWorker(to) })
		return
	}
	r.client.Lost(id)
}

// giveUp ends the calls of silent workers that did not reconnect in time.
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

// Load returns the load of each known server.
func (r *Router) Load() map[schema.ServerID]Load {
	r.mu.RLock()
	defer r.mu.RUnlock()
	loads := make(map[schema.ServerID]Load, len(r.routes))
	for id, rt := range r.routes {
		loads[id] = rt.load()
	}
	return loads
}

// probe checks whether silent workers that owe answers still listen, and ends asynchronous calls
// whose answers are overdue.
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
		at := r.clock.of(now)
		for _, p := range r.flights.overdue(at) {
			p.expire()
		}
		r.giveUp(now)
		if again := r.again.Load(); again != 0 && at-again < int64(probeGrace) {
			continue
		}
		r.mu.RLock()
		var silent []schema.WorkerID
		for id, w := range r.workers {
			if w.owed.get() > 0 && at-w.heard.Load() > int64(probeAfter) {
				w.heard.Store(at) // check again after the same time
				silent = append(silent, id)
			}
		}
		r.mu.RUnlock()
		for _, id := range silent {
			asking.Go(func() { r.lost.look(ctx, id) })
		}
	}
}

// lookup returns the route of a server, and creates it if necessary.
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

// unready returns the error of a live worker that has the server and cannot run it, or "". With
// several such workers, the error is that of the first one by id.
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
