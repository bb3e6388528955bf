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

// Calls runs calls. *calls.Calls implements it.
type Calls interface {
	Submit(ctx context.Context, r calls.Request) (calls.Outcome, error)
	Await(ctx context.Context, a *calls.Accepted, who schema.Principal) (*calls.Status, error)
	Result(ctx context.Context, s *calls.Status) (*schema.Result, error)
	Confirm(ctx context.Context, q calls.Confirmation) (calls.Confirmed, error)
	Cancel(ctx context.Context, id schema.CallID, who schema.Principal) (*calls.Status, error)
}

// Catalog provides the existing tools and the workers that have them. *catalog.Catalog implements
// it.
type Catalog interface {
	Servers() []catalog.Server
	Tools(server schema.ServerID) ([]catalog.Tool, error)
	Holders(server schema.ServerID) []schema.Worker
}

// Asker sends requests to workers. *dispatch.Router implements it.
type Asker interface {
	Request(ctx context.Context, workerID schema.WorkerID, method string, server schema.ServerID, payload []byte, timeout time.Duration) ([]byte, error)
}

// Options holds the dependencies of a manager. All but Metrics, Traces and Now are required.
type Options struct {
	File    *File
	Calls   Calls
	Catalog Catalog
	Workers Asker
	Metrics *telemetry.Episodes // if nil, nothing is counted
	Traces  *telemetry.Traces   // if nil, there are no spans
	Log     *slog.Logger
	Now     func() time.Time // if nil, time.Now
}

// Manager runs the episodes of environments. It is safe for concurrent use. Close ends it.
type Manager struct {
	o         Options
	stop      chan struct{}
	work      sync.WaitGroup
	oracles   expectedStatesCache
	snapshots snapshots
	lost      lostWorkers
	tally     tally.Book
	since     time.Time

	mu       sync.Mutex
	closed   bool
	tables   map[string]*table
	episodes map[string]*Episode
	running  map[string]int // number of episodes by environment
}

// sweepEvery is the interval of the search for idle episodes.
const sweepEvery = time.Second

// New returns a manager without episodes. Close it after use.
func New(o Options) *Manager {
	if o.Now == nil {
		o.Now = time.Now
	}
	m := &Manager{o: o, stop: make(chan struct{}), tables: make(map[string]*table), episodes: make(map[string]*Episode), running: make(map[string]int)}
	m.since = o.Now()
	m.work.Go(m.sweep)
	return m
}

// Environments returns the environments, sorted by name.
func (m *Manager) Environments() []*Environment { return m.o.File.Sorted() }

// Environment returns the environment of that name. If name is empty, it returns the first one. The
// error is of KindNotFound.
func (m *Manager) Environment(name string) (*Environment, error) {
	if name == "" {
		return m.Environments()[0], nil
	}
	if e := m.o.File.Environments[name]; e != nil {
		return e, nil
	}
	return nil, schema.Errorf(schema.KindNotFound, "There is no environment %q.", name)
}

// sweep closes idle episodes until the manager is closed.
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
		var closing sync.WaitGroup // in parallel: a worker that does not answer must not keep the processes of others leased
		for _, ep := range m.all() {
			if ep.IdleTime(now) > ep.env.Limits.Idle {
				m.o.Log.Info("an episode was given up, because nobody used it", "environment", ep.env.name, "episode", ep.id)
				closing.Go(ep.Close)
			}
		}
		closing.Wait()
	}
}

func (m *Manager) all() []*Episode {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Collect(maps.Values(m.episodes))
}

// Close closes all episodes and waits for the manager's goroutines.
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

// place reserves capacity for one episode of the environment. The error is of KindUnavailable.
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

// leave frees the place of an episode.
func (m *Manager) leave(ep *Episode) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.running[ep.env.name]--
	delete(m.episodes, ep.key)
}

// Begin holds the parameters of a new episode.
type Begin struct {
	Task *Task
	// ID is the id for display. If empty, it is generated.
	ID string
	// Seed is written to the transcript and sent to the processes or servers that use it.
	Seed int64
	// Snapshot names the state from which the episode starts, without the reset call. If empty,
	// it starts from the state of the environment. The steps are counted from 0.
	Snapshot string
	// Principal is the caller of the episode. Calls are made in its name.
	Principal schema.Principal
}

// Begin starts an episode. The error is a *schema.Error: KindUnavailable if there is no capacity, no
// tool or no worker, or the error of the reset call.
func (m *Manager) Begin(ctx context.Context, e *Environment, b Begin) (*Episode, error) {
	return m.begin(ctx, e, b, false)
}

// begin implements Begin. An oracle is an internal episode that is not counted.
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
	// Servers keep state under the key, so it must be unique. The ID is chosen by the caller.
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
			m.leave(ep)
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
