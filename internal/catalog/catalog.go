package catalog

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/callyard/callyard/internal/dispatch"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
	"github.com/callyard/callyard/pkg/schema/validate"
)

const (
	// silentFor is how long a worker may be silent before it counts as gone. A
	// worker that owes an answer is noticed sooner, by the router's probe.
	silentFor = 3500 * time.Millisecond
	// describeTimeout bounds one reading of a server's definitions from a worker.
	describeTimeout = 15 * time.Second
	// rememberFor is how long a server is still known when its last worker is
	// gone, so that a restart of the fleet answers "come back later" and not "no
	// such server".
	rememberFor = 10 * time.Minute
	schemasKept = 20_000
)

// firstWords is how long after the start the absence of any worker proves nothing:
// each announces itself every second.
const firstWords = 5 * time.Second

// Catalog is the front door's view of the fleet. All methods are safe for
// concurrent use.
type Catalog struct {
	conn     *bus.Conn
	router   *dispatch.Router
	id       string
	log      *slog.Logger
	switches *bus.Records[bus.Switch]
	added    *bus.Records[bus.AddedServer]
	schemas  *validate.Cache
	presence *bus.Watch
	deciding *bus.Watch // the signs of life of approvers
	stop     context.CancelFunc
	wait     sync.WaitGroup
	said     atomic.Pointer[func() []schema.InForce] // what this router has in force
	wake     chan struct{}                           // something was announced that needs reading
	opened   time.Time
	standing atomic.Pointer[standing]

	mu      sync.RWMutex
	workers map[string]*seenWorker
	routers map[string]time.Time
	inForce map[string][]schema.InForce // of routers
	// approvers are those that were heard lately, by id.
	approvers map[string]seenApprover
	defs      map[string]*definitions // by server and digest
	servers   map[string]*server
	changes   []chan struct{}
	// addedIDs are the servers that were added over the API, removed those of them
	// that were removed and that some worker still reports.
	addedIDs, removed map[string]struct{}
}

type seenWorker struct {
	schema.Worker
	seen time.Time
}

// server is what all workers together say of one server.
type server struct {
	view Server
	defs *definitions // the newest that was read; kept when all workers fail
	want string       // the digest that is announced, "" when none
	from string       // a worker that has it
	lost time.Time    // since when no live worker has it; zero while one does
}

// Open starts to follow the fleet as the router id and waits a moment for the
// workers that are already there.
func Open(ctx context.Context, conn *bus.Conn, router *dispatch.Router, id string, log *slog.Logger) (*Catalog, error) {
	c := &Catalog{
		conn: conn, router: router, id: id, log: log, wake: make(chan struct{}, 1), opened: time.Now(),
		schemas: validate.NewCache(schemasKept),
		workers: make(map[string]*seenWorker), routers: map[string]time.Time{}, inForce: map[string][]schema.InForce{}, approvers: map[string]seenApprover{},
		defs: make(map[string]*definitions), servers: make(map[string]*server), removed: make(map[string]struct{}),
	}
	var err error
	// Changes may be announced before both tables are here; they are read below.
	var opened atomic.Bool
	whenOpen := func(f func()) func() {
		return func() {
			if opened.Load() {
				f()
			}
		}
	}
	if c.switches, err = bus.OpenSwitches(ctx, conn, whenOpen(c.switched)); err != nil {
		return nil, err
	}
	if c.added, err = bus.OpenServers(ctx, conn, whenOpen(c.addedChanged)); err != nil {
		c.switches.Close()
		return nil, err
	}
	opened.Store(true)
	c.addedChanged()
	if c.presence, err = conn.WatchPresence(c.worker, c.sawRouter); err != nil {
		c.switches.Close()
		c.added.Close()
		return nil, err
	}
	if c.deciding, err = conn.WatchApprovers(c.sawApprover); err != nil {
		c.presence.Stop()
		c.switches.Close()
		c.added.Close()
		return nil, err
	}
	running, stop := context.WithCancel(context.Background())
	c.stop = stop
	c.wait.Go(func() { c.follow(running) })
	c.wait.Go(func() { c.readAll(running) })
	if err := conn.Hello(); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// Close stops following.
func (c *Catalog) Close() {
	c.presence.Stop()
	c.deciding.Stop()
	c.stop()
	c.wait.Wait()
	c.switches.Close()
	c.added.Close()
}

// worker takes in an announcement.
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
		c.awaken()
		c.notify()
	}
}

// awaken has the definitions and the added servers looked at soon.
func (c *Catalog) awaken() {
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
		if x.ID != y.ID || x.State != y.State || x.Digest != y.Digest || x.Error != y.Error || x.PID != y.PID || x.Sessions != y.Sessions || x.Restarts != y.Restarts || x.Slots != y.Slots || x.Asks != y.Asks || x.Protocol != y.Protocol || !sameBox(x.Box, y.Box) {
			return false
		}
	}
	return true
}

func sameBox(a, b *schema.Box) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

func (c *Catalog) sawRouter(id string, inForce []schema.InForce) {
	c.mu.Lock()
	c.routers[id] = time.Now()
	c.inForce[id] = inForce
	n := len(c.routers)
	c.mu.Unlock()
	c.router.SetRouters(n)
}

// follow announces this router and drops what fell silent.
func (c *Catalog) follow(ctx context.Context) {
	tick := time.NewTicker(bus.AnnounceEvery)
	defer tick.Stop()
	for {
		if err := c.conn.AnnounceRouter(c.id, c.own()); err != nil {
			c.log.Debug("announcing the router", "error", err)
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
	var gone []string
	c.mu.Lock()
	// While our own connection is down everybody is silent; nobody is dropped
	// for that.
	if c.conn.Ready() != nil {
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
	for id, seen := range c.routers {
		if now.Sub(seen) > silentFor && id != c.id {
			delete(c.routers, id)
			delete(c.inForce, id)
		}
	}
	c.expireApproversLocked(now)
	routers := len(c.routers)
	forgotten := false
	for _, s := range c.servers {
		forgotten = forgotten || !s.lost.IsZero() && now.Sub(s.lost) > rememberFor
	}
	if len(gone) > 0 || forgotten {
		c.rebuildLocked()
	}
	c.mu.Unlock()
	c.router.SetRouters(routers)
	for _, id := range gone {
		c.log.Warn("a worker is gone", "worker", id)
		c.router.RemoveWorker(id)
	}
	if len(gone) > 0 || forgotten {
		c.notify()
	}
}

// readAll fetches definitions that were announced and are not here yet.
func (c *Catalog) readAll(ctx context.Context) {
	retry := time.NewTicker(bus.AnnounceEvery)
	defer retry.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.wake:
		case <-retry.C:
		}
		var reading sync.WaitGroup
		for id, from := range c.missing() {
			reading.Go(func() {
				if err := c.read(ctx, id, from); err != nil && ctx.Err() == nil {
					c.log.Warn("reading the definitions of a server", "server", id, "worker", from, "error", err)
				}
			})
		}
		reading.Wait()
		c.spread(ctx)
	}
}

func (c *Catalog) missing() map[string]string {
	c.mu.RLock()
	defer c.mu.RUnlock()
	missing := make(map[string]string)
	for id, s := range c.servers {
		if s.want != "" && c.defs[defsKey(id, s.want)] == nil {
			missing[id] = s.from
		}
	}
	return missing
}

func (c *Catalog) read(ctx context.Context, id, worker string) error {
	body, err := c.router.Request(ctx, worker, bus.MethodDescribe, id, nil, describeTimeout)
	if err != nil {
		return err
	}
	var answer bus.Description
	if err := json.Unmarshal(body, &answer); err != nil {
		return fmt.Errorf("reading the worker's answer: %w", err)
	}
	if answer.Definitions == nil {
		return nil // it has none yet; the next announcement says more
	}
	d := read(id, answer.Definitions, c.log)
	c.mu.Lock()
	c.defs[defsKey(id, answer.Digest)] = d
	c.rebuildLocked()
	c.mu.Unlock()
	c.notify()
	return nil
}

func defsKey(server, digest string) string { return server + "\x00" + digest }

// Changes returns a channel that gets a word after each change of the view;
// words that nobody reads are dropped. cancel ends it.
func (c *Catalog) Changes() (changes <-chan struct{}, cancel func()) {
	ch := make(chan struct{}, 1)
	c.mu.Lock()
	c.changes = append(c.changes, ch)
	c.mu.Unlock()
	return ch, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		for i, other := range c.changes {
			if other == ch {
				c.changes = append(c.changes[:i:i], c.changes[i+1:]...)
				return
			}
		}
	}
}

func (c *Catalog) notify() {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for _, ch := range c.changes {
		select {
		case ch <- struct{}{}:
		default:
		}
	}
}
