package episode

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/callyard/callyard/internal/calls"
	"github.com/callyard/callyard/internal/catalog"
	"github.com/callyard/callyard/internal/episode/tally"
	"github.com/callyard/callyard/internal/telemetry"
	"github.com/callyard/callyard/pkg/schema"
)

// Calls runs calls; *calls.Calls is one.
type Calls interface {
	Submit(ctx context.Context, r calls.Request) (calls.Outcome, error)
	Await(ctx context.Context, a *calls.Accepted, who schema.Principal) (*calls.Status, error)
	Result(ctx context.Context, s *calls.Status) (*schema.Result, error)
	Confirm(ctx context.Context, q calls.Confirmation) (calls.Confirmed, error)
	Cancel(ctx context.Context, id schema.CallID, who schema.Principal) (*calls.Status, error)
}

// Catalog says which tools there are and who has them; *catalog.Catalog is one.
type Catalog interface {
	Servers() []catalog.Server
	Tools(server schema.ServerID) ([]catalog.Tool, error)
	Holders(server schema.ServerID) []schema.Worker
}

// Asker asks a worker something; *dispatch.Router is one.
type Asker interface {
	Request(ctx context.Context, workerID schema.WorkerID, method string, server schema.ServerID, payload []byte, timeout time.Duration) ([]byte, error)
}

// Metrics counts episodes. Its methods must not block.
type Metrics interface {
	// EpisodeBegan and EpisodeEnded count an episode of an environment. outcome is "done",
	// "truncated", "masked" or "closed"; reason is the failure kind of a masked one.
	EpisodeBegan(environment string)
	EpisodeEnded(environment, outcome, reason string)
}

// Options says what a manager runs on. All but Metrics, Traces and Now are required.
type Options struct {
	File    *File
	Calls   Calls
	Catalog Catalog
	Workers Asker
	Metrics Metrics           // nil counts nothing
	Traces  *telemetry.Traces // nil: there are no spans
	Log     *slog.Logger
	Now     func() time.Time // nil is time.Now
}

// Manager runs the episodes of environments. It is safe for concurrent use. Close ends it.
type Manager struct {
	o         Options
	stop      chan struct{}
	work      sync.WaitGroup
	oracles   oracles
	snapshots snapshots
	tally     tally.Book
	since     time.Time

	mu       sync.Mutex
	closed   bool
	tables   map[string]*table
	episodes map[string]*Episode
	running  map[string]int // by environment
}

// sweepEvery is how often idle episodes are looked for.
const sweepEvery = time.Second

// New returns a manager without episodes.
func New(o Options) *Manager {
	if o.Now == nil {
		o.Now = time.Now
	}
	m := &Manager{o: o, stop: make(chan struct{}), tables: make(map[string]*table), episodes: make(map[string]*Episode), running: make(map[string]int)}
	m.since = o.Now()
	m.work.Go(m.sweep)
	return m
}

// Environments are the environments in the order of their names.
func (m *Manager) Environments() []*Environment { return m.o.File.Sorted() }

// Environment is the environment of that name; "" is the first one. The error is of
// KindNotFound.
func (m *Manager) Environment(name string) (*Environment, error) {
	if name == "" {
		return m.Environments()[0], nil
	}
	if e := m.o.File.Environments[name]; e != nil {
		return e, nil
	}
	return nil, schema.Errorf(schema.KindNotFound, "There is no environment %q.", name)
}

// Running is the number of episodes that have not been closed.
func (m *Manager) Running() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.episodes)
}

// sweep closes episodes that nobody has used for a while.
func (m *Manager) sweep() {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		select {
		case <-m.stop:
			return
		case <-tick.C:
		}
		now := m.o.Now()
		for _, ep := range m.all() {
			if ep.idleSince(now) > ep.env.Limits.Idle {
				m.o.Log.Info("an episode was given up, because nobody used it", "environment", ep.env.name, "episode", ep.id)
				ep.Close()
			}
		}
	}
}

func (m *Manager) all() []*Episode {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Collect(maps.Values(m.episodes))
}

// Close closes all episodes and waits for what the manager started.
func (m *Manager) Close() {
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	close(m.stop)
	m.work.Wait()
	var closing sync.WaitGroup
	for _, ep := range m.all() {
		closing.Go(ep.Close)
	}
	closing.Wait()
}

// place reserves one of the environment's episodes. The error is of KindUnavailable.
func (m *Manager) place(e *Environment) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return schema.Errorf(schema.KindUnavailable, "The environments are shutting down.")
	}
	if m.running[e.name] >= e.Limits.Episodes {
		return schema.Errorf(schema.KindUnavailable, "The environment %q has %d episodes, the most that its limits allow; close some, or raise limits.episodes.", e.name, e.Limits.Episodes).RetryableAfter(time.Second)
	}
	m.running[e.name]++
	return nil
}

func (m *Manager) leave(e *Environment, id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.running[e.name]--
	if id != "" {
		delete(m.episodes, id)
	}
}

// Begin says how an episode begins.
type Begin struct {
	Task *Task
	// ID is shown with the episode; "" makes one.
	ID string
	// Seed goes into the transcript, and to processes that are told it.
	Seed int64
	// Snapshot is the name of the state that the episode begins with, without its reset
	// call; "" is that of the environment. The steps of the episode are counted from 0.
	Snapshot string
	// Principal is who asks; its calls are made in its name.
	Principal schema.Principal
}

// Begin begins an episode. The error is a *schema.Error: KindUnavailable where there is no
// place, no tool or no worker, and that of the reset call.
func (m *Manager) Begin(ctx context.Context, e *Environment, b Begin) (*Episode, error) {
	return m.begin(ctx, e, b, false)
}

// begin is Begin; an oracle is an episode of the manager's own, which is not counted.
func (m *Manager) begin(ctx context.Context, e *Environment, b Begin, oracle bool) (*Episode, error) {
	t, err := m.table(e)
	if err != nil {
		return nil, err
	}
	prompt, err := e.promptOf(b.Task)
	if err != nil {
		return nil, err
	}
	from, err := m.snapshots.find(e, b.Snapshot)
	if err != nil {
		return nil, err
	}
	if !oracle {
		if err := m.place(e); err != nil {
			return nil, err
		}
	}
	// The key is what servers keep state under: no other episode ever has it, whatever ID its
	// caller chose.
	ep := &Episode{m: m, env: e, task: b.Task, table: t, key: schema.NewID("episode"), id: b.ID, who: b.Principal, prompt: prompt, seed: b.Seed, from: from, oracle: oracle}
	ep.id = cmp.Or(ep.id, ep.key)
	ep.ctx, ep.cancel = context.WithCancel(context.Background())
	ep.spans.begin(ctx, ep)
	err = ep.lease(ctx)
	if err == nil && from == nil {
		err = ep.reset(ctx)
	}
	if err != nil {
		ep.release()
		ep.cancel()
		ep.spans.whole.Outcome(nil, err)
		ep.spans.whole.End()
		if !oracle {
			m.leave(e, "")
		}
		return nil, err
	}
	ep.begun(m.o.Now())
	if oracle {
		return ep, nil
	}
	m.mu.Lock()
	m.episodes[ep.key] = ep
	m.mu.Unlock()
	if m.o.Metrics != nil {
		m.o.Metrics.EpisodeBegan(e.name)
	}
	return ep, nil
}
