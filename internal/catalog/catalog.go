package catalog

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/callyard/callyard/internal/dispatch"
	"github.com/callyard/callyard/internal/store/pintable"
	"github.com/callyard/callyard/internal/store/servertable"
	"github.com/callyard/callyard/internal/store/settable"
	"github.com/callyard/callyard/internal/store/switchtable"
	"github.com/callyard/callyard/internal/validate"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

const (
	// silentFor is the time without an announcement after which a worker counts as dead. The
	// router's probe detects a dead worker sooner if it owes an answer.
	silentFor = 3500 * time.Millisecond
	// describeTimeout limits one read of a server's definitions from a worker.
	describeTimeout = 15 * time.Second
	// rememberFor is the time for which a server is still known after its last worker has
	// disconnected, so that callers get "retry later" and not "no such server" while the
	// fleet restarts.
	rememberFor = 10 * time.Minute
	schemasKept = 20_000
)

// discoveryGrace is the time after the start during which missing workers prove nothing. Each worker
// announces itself every second.
const discoveryGrace = 5 * time.Second

// Catalog is the front door's view of the fleet. It is safe for concurrent use.
type Catalog struct {
	conn     *bus.Conn
	router   *dispatch.Router
	peers    *peers
	changes  changes
	seen     seen
	finding  Finding
	log      *slog.Logger
	switches *bus.Table[switchtable.Switch]
	added    *bus.Table[servertable.Server]
	pins     atomic.Pointer[bus.Table[pintable.Server]] // nil while the table cannot be read
	sets     sets
	schemas  *validate.Cache
	presence *bus.Watch
	deciding *bus.Watch // watches the presence of approvers
	stop     context.CancelFunc
	wait     sync.WaitGroup
	wake     chan struct{} // wakes the reader after an announcement
	opened   time.Time
	standing atomic.Pointer[standing]

	mu      sync.RWMutex
	workers map[schema.WorkerID]*seenWorker
	defs    map[string]*definitions // by defsKey
	servers map[schema.ServerID]*server
	// addedIDs holds the servers that were added over the API. removed holds those that were
	// removed again but that some worker still reports.
	addedIDs, removed map[schema.ServerID]struct{}
}

type seenWorker struct {
	schema.Worker
	seen time.Time
}

// server merges the reports of all workers about one server.
type server struct {
	view Server
	defs *definitions    // the newest that were read; kept when all workers fail
	want string          // the announced digest, "" if there is none
	from schema.WorkerID // a worker that has this digest
	lost time.Time       // when the last live worker with it was lost; zero while there is one
	pins *pinned         // nil if the server has no pin
}

// Open starts to follow the fleet as the router with this id and asks all workers to announce
// themselves. It does not wait for their announcements.
func Open(ctx context.Context, conn *bus.Conn, router *dispatch.Router, id string, finding Finding, log *slog.Logger) (*Catalog, error) {
	c := &Catalog{
		conn: conn, router: router, peers: newPeers(id), finding: finding, log: log, wake: make(chan struct{}, 1), opened: time.Now(),
		schemas: validate.NewCache(schemasKept),
		workers: make(map[schema.WorkerID]*seenWorker), defs: make(map[string]*definitions), servers: make(map[schema.ServerID]*server), removed: make(map[schema.ServerID]struct{}),
	}
	var err error
	// Changes may arrive before both tables are open. They are read below.
	var opened atomic.Bool
	whenOpen := func(f func()) func() {
		return func() {
			if opened.Load() {
				f()
			}
		}
	}
	if c.switches, err = switchtable.Open(ctx, conn, whenOpen(c.switched)); err != nil {
		return nil, err
	}
	if c.added, err = servertable.Open(ctx, conn, whenOpen(c.addedChanged)); err != nil {
		c.switches.Close()
		return nil, err
	}
	if c.sets.table, c.sets.fault = settable.Open(ctx, conn, whenOpen(c.Sets().changed)); c.sets.fault != nil {
		log.Warn("sets of tools that were created over the API are not available at this front door: run `callyard init`, and update NATS to the permissions of this version", "error", c.sets.fault)
	}
	opened.Store(true)
	c.addedChanged()
	c.openPins(ctx)
	if c.presence, err = conn.WatchPresence(c.worker, func(d *schema.FrontDoor) { router.SetRouters(c.peers.sawRouter(d)) }); err != nil {
		c.closeTables()
		return nil, err
	}
	if c.deciding, err = conn.WatchApprovers(c.peers.sawApprover); err != nil {
		c.presence.Stop()
		c.closeTables()
		return nil, err
	}
	running, stop := context.WithCancel(context.Background())
	c.stop = stop
	c.wait.Go(func() { c.follow(running) })
	c.wait.Go(func() { (&reader{c: c}).run(running) })
	if err := conn.Hello(); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// Close stops following the fleet.
func (c *Catalog) Close() {
	c.presence.Stop()
	c.deciding.Stop()
	c.stop()
	c.wait.Wait()
	c.closeTables()
}

func (c *Catalog) closeTables() {
	c.switches.Close()
	c.added.Close()
	if table := c.pins.Load(); table != nil {
		table.Close()
	}
	if c.sets.table != nil {
		c.sets.table.Close()
	}
}

// worker processes the announcement of a worker.
func (c *Catalog) worker(w *schema.Worker) {
	c.router.SetWorker(w)
	c.mu.Lock()
	old := c.workers[w.ID]
	c.workers[w.ID] = &seenWorker{Worker: *w, seen: time.Now()}
	changed := old == nil || !sameServers(old.Servers, w.Servers) || old.Draining != w.Draining || old.APIServers != w.APIServers
	if changed {
		c.rebuildLocked()
	}
	c.mu.Unlock()
	if changed {
		c.wakeReader()
		c.changes.notify()
	}
}

// wakeReader wakes the reader, which reads definitions and starts added servers.
func (c *Catalog) wakeReader() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

func sameServers(a, b []schema.Server) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		x, y := a[i], b[i]
		if x.ID != y.ID || x.State != y.State || x.Digest != y.Digest || x.Error != y.Error || x.PID != y.PID || x.Sessions != y.Sessions || x.Restarts != y.Restarts || x.Slots != y.Slots || x.Asks != y.Asks || x.Pin != y.Pin || x.Added != y.Added || x.Protocol != y.Protocol || !sameSandbox(x.Sandbox, y.Sandbox) {
			return false
		}
	}
	return true
}

func sameSandbox(a, b *schema.Sandbox) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

// follow announces this router and drops workers and peers that fell silent.
func (c *Catalog) follow(ctx context.Context) {
	tick := time.NewTicker(bus.AnnounceEvery)
	defer tick.Stop()
	for {
		if err := c.conn.AnnounceRouter(c.peers.own()); err != nil {
			c.log.Debug("announcing the router failed", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			c.expire(now)
		}
	}
}

func (c *Catalog) expire(now time.Time) {
	var gone []schema.WorkerID
	// While our own connection is down, no announcement arrives, so no worker is dropped.
	down := c.conn.Ready() != nil
	deaf := down || c.peers.deaf(now)
	c.mu.Lock()
	if down {
		for _, w := range c.workers {
			w.seen = now
		}
	}
	for id, w := range c.workers {
		if now.Sub(w.seen) > silentFor {
			gone = append(gone, id)
			delete(c.workers, id)
		}
	}
	forgotten := false
	for _, s := range c.servers {
		forgotten = forgotten || !s.lost.IsZero() && now.Sub(s.lost) > rememberFor
	}
	if len(gone) > 0 || forgotten {
		c.rebuildLocked()
	}
	c.mu.Unlock()
	c.router.SetRouters(c.peers.expire(now, deaf))
	for _, id := range gone {
		c.log.Warn("a worker stopped responding", "worker", id)
		c.router.RemoveWorker(id, deaf)
	}
	if len(gone) > 0 || forgotten {
		c.changes.notify()
	}
}

// Changes returns a channel that receives a value after each change of the view. Values are
// dropped while one is unread. cancel ends the subscription.
func (c *Catalog) Changes() (changes <-chan struct{}, cancel func()) { return c.changes.subscribe() }

// changes notifies subscribers of changes of the view. It is safe for concurrent use.
type changes struct {
	count atomic.Uint64 // number of changes
	mu    sync.Mutex
	all   []chan struct{}
}

func (c *changes) subscribe() (<-chan struct{}, func()) {
	ch := make(chan struct{}, 1)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, ch)
	return ch, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.all = slices.DeleteFunc(c.all, func(other chan struct{}) bool { return other == ch })
	}
}

func (c *changes) notify() {
	c.count.Add(1)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, ch := range c.all {
		select {
		case ch <- struct{}{}:
		default:
		}
	}
}
