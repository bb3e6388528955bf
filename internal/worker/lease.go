package worker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/callyard/callyard/internal/kit/dirstate"
	"github.com/callyard/callyard/internal/kit/sleep"
	"github.com/callyard/callyard/internal/launch"
	"github.com/callyard/callyard/internal/launch/sandbox"
	"github.com/callyard/callyard/internal/session"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

// Leases configures processes of a server that are kept for single holders, such as the episodes of
// an environment. A server on the network uses sessions instead, which need no settings.
type Leases struct {
	// Spec starts a process; see [SpecIn].
	Spec launch.Spec
	// Sandbox is used instead of Spec: each holder gets a container, for at most Time. If nil, a
	// process is started on this machine.
	Sandbox *Sandbox
	Time    time.Duration
	// StateDir is copied for each process, which runs in the copy. If empty, the process gets an
	// empty directory. Base is the directory for the copies. It is removed if this process is
	// killed.
	StateDir, Base string
	// Warm is the number of processes kept ready, Max the maximum number of processes.
	Warm, Max int
	// Idle is the time without a call after which a lease is ended.
	Idle time.Duration
	// Seeded means that a process receives the seed of its holder, so no process can be started
	// in advance. Clock is the time that processes receive; if empty, they receive none.
	Seeded bool
	Clock  string
}

// Environment variables of a leased process.
const (
	variableSeed  = "CALLYARD_SEED"
	variableClock = "CALLYARD_CLOCK"
)

// EpisodeVariable is the environment variable with the directory of a leased process.
const EpisodeVariable = "EPISODE_DIR"

// EpisodeDir is a placeholder in the arguments and the environment of a leased process. It is
// replaced with the directory of the process, which is also in the variable of the same name.
const EpisodeDir = "{EPISODE_DIR}"

const (
	leaseStart = time.Minute // timeout for a process to become ready
	leaseSweep = 5 * time.Second

	maxDialed  = 10_000           // sessions of holders, per server
	dialedIdle = 20 * time.Minute // minimum of the idle time
)

// leases holds the leased processes of one server, or sessions with it.
type leases struct {
	w      *Worker
	served *Served
	set    Leases
	dialed bool          // sessions over the network, without a directory
	pool   *session.Pool // of attached programs, if each holder is bound to one; else nil
	solo   *session.Solo
	sweeps sync.Once
	ctx    context.Context // canceled when no more are started
	stop   context.CancelFunc
	work   sync.WaitGroup
	wanted chan struct{} // signaled when a warm process was taken

	pinning sync.Mutex
	spec    sandbox.Spec // of the containers, once the engine has resolved the image

	mu        sync.Mutex
	open      map[string]*lease // nil while its process starts
	warm      []*lease
	count     int               // includes those that are starting or ending
	calls     int               // running
	idle      chan struct{}     // closed when the last call ends; nil if nobody waits for that
	snapshots map[string]string // directories by digest
	kept      []string          // digests of snapshots, oldest first
}

// lease is a process with its directory.
type lease struct {
	one  *session.Single
	to   *session.Binding   // instead of one, at an attached program
	in   *sandbox.Container // nil if it runs outside a container
	dir  string
	used time.Time
	busy int
}

// do runs a call; see [session.Single.Do].
func (o *lease) do(req *session.Request, done func(*session.Request, session.Outcome)) *session.Running {
	if o.to != nil {
		return o.to.Do(req, done)
	}
	return o.one.Do(req, done)
}

// openLeases returns the leases of a server, or nil if it has none. It starts processes only if warm
// ones are configured.
func openLeases(w *Worker, s *Served, pool *session.Pool) *leases {
	l := &leases{w: w, served: s, wanted: make(chan struct{}, 1), open: make(map[string]*lease)}
	switch {
	case s.Leases != nil:
		l.set, l.solo = *s.Leases, session.NewSolo(s.Session, w.log)
	case session.Dialed(s.Session.Spec.Type) && s.Adapt == nil:
		l.set, l.dialed, l.solo = Leases{Max: maxDialed, Idle: max(dialedIdle, s.SessionIdle)}, true, session.NewDialed(s.Session, w.log)
	case s.Session.Attached:
		l.set, l.pool = Leases{Max: maxDialed, Idle: max(dialedIdle, s.SessionIdle)}, pool
	default:
		return nil
	}
	l.ctx, l.stop = context.WithCancel(context.Background())
	if l.set.Base != "" {
		w.launcher.Remember(l.note())
	}
	if l.set.Warm > 0 && !l.set.Seeded {
		l.work.Go(l.refill)
	}
	return l
}

// refill keeps warm processes ready.
func (l *leases) refill() {
	for failures := 0; ; {
		l.mu.Lock()
		missing := len(l.warm) < l.set.Warm && l.count < l.set.Max
		if missing {
			l.count++
		}
		l.mu.Unlock()
		if !missing {
			select {
			case <-l.ctx.Done():
				return
			case <-l.wanted:
			}
			continue
		}
		one, err := l.begin(l.ctx, &bus.LeaseRequest{})
		l.mu.Lock()
		ended := l.ctx.Err() != nil
		switch {
		case err != nil:
			l.count--
		case !ended:
			l.warm = append(l.warm, one)
		}
		l.mu.Unlock()
		if err == nil && ended {
			l.end(one)
			return
		}
		if err != nil {
			if l.ctx.Err() != nil {
				return
			}
			l.w.log.Warn("a process to be leased did not start", "server", l.served.Session.Spec.ID, "error", err)
			if !sleep.For(pauses.Delay(failures), l.ctx.Done()) {
				return
			}
			failures++
			continue
		}
		failures = 0
	}
}

func (l *leases) want() {
	select {
	case l.wanted <- struct{}{}:
	default:
	}
}

// begin starts a process on a fresh copy of the state, or of a snapshot.
func (l *leases) begin(ctx context.Context, q *bus.LeaseRequest) (_ *lease, err error) {
	if l.pool != nil {
		to, err := session.Bind(l.pool, q.ID)
		if err != nil {
			return nil, err
		}
		return &lease{to: to, used: time.Now()}, nil
	}
	if l.dialed {
		ctx, cancel := context.WithTimeout(ctx, leaseStart)
		defer cancel()
		one, err := l.solo.Dial(ctx)
		if err != nil {
			return nil, err
		}
		return &lease{one: one, used: time.Now()}, nil
	}
	dir, err := os.MkdirTemp(l.set.Base, "episode-")
	if err != nil {
		return nil, fmt.Errorf("making the directory of an episode: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, dirstate.Remove(dir))
		}
	}()
	from := l.set.StateDir
	if q.Snapshot != "" {
		l.mu.Lock()
		from = l.snapshots[q.Snapshot]
		l.mu.Unlock()
		if from == "" {
			return nil, errNoSnapshot(l.served)
		}
	}
	if from != "" {
		err := dirstate.Copy(from, dir)
		if q.Snapshot != "" && !l.keeps(q.Snapshot, from) { // it was removed in the meantime: the copy may be partial
			return nil, errNoSnapshot(l.served)
		}
		if err != nil {
			return nil, fmt.Errorf("copying the state directory: %w", err)
		}
	}
	env := make(map[string]string)
	if l.set.Seeded {
		env[variableSeed] = strconv.FormatInt(q.Seed, 10)
	}
	if l.set.Clock != "" {
		env[variableClock] = l.set.Clock
	}
	ctx, cancel := context.WithTimeout(ctx, leaseStart)
	defer cancel()
	if l.set.Sandbox != nil {
		env[EpisodeVariable] = sandbox.StateTarget
		one, c, err := l.contained(ctx, dir, env)
		if err != nil {
			return nil, err
		}
		return &lease{one: one, in: c, dir: dir, used: time.Now()}, nil
	}
	spec := SpecIn(l.set.Spec, dir)
	maps.Copy(spec.Env, env)
	child, err := l.w.launcher.Start(spec)
	if err != nil {
		return nil, err
	}
	one, err := l.solo.Open(ctx, session.Process{Program: child, Stdin: child.Stdin, Stdout: child.Stdout})
	if err != nil {
		return nil, err
	}
	return &lease{one: one, dir: dir, used: time.Now()}, nil
}

// SpecIn returns the spec of a server whose process runs in the directory of an episode.
func SpecIn(spec launch.Spec, dir string) launch.Spec {
	put := func(s string) string { return strings.ReplaceAll(s, EpisodeDir, dir) }
	spec.Dir = dir
	args := make([]string, len(spec.Args))
	for i, a := range spec.Args {
		args[i] = put(a)
	}
	env := map[string]string{EpisodeVariable: dir}
	for name, value := range spec.Env {
		env[name] = put(value)
	}
	spec.Args, spec.Env = args, env
	return spec
}

// take assigns a process to a holder: a warm one if available, else a new one.
func (l *leases) take(q *bus.LeaseRequest) error {
	id := q.ID
	l.mu.Lock()
	if l.ctx.Err() != nil {
		l.mu.Unlock()
		return schema.Errorf(schema.KindUnavailable, "The processes of the server %q are being ended.", l.served.Session.Spec.ID)
	}
	l.sweeps.Do(func() { l.work.Go(l.sweep) })
	if _, there := l.open[id]; there {
		l.mu.Unlock()
		return schema.Errorf(schema.KindConflict, "A lease with this id exists already.")
	}
	var dead []*lease // processes that ended while they were warm, or that make room
	endDead := func() {
		for _, one := range dead {
			l.end(one)
		}
		dead = nil
	}
	defer endDead()
	for len(l.warm) > 0 && q.Snapshot == "" {
		one := l.warm[0]
		l.warm = l.warm[1:]
		if l.usable(one) {
			l.hand(id, one)
			l.mu.Unlock()
			l.want()
			return nil
		}
		dead = append(dead, one)
	}
	if q.Snapshot != "" && l.count >= l.set.Max && len(l.warm) > 0 { // it has the wrong state, and its place is needed
		dead = append(dead, l.warm[0])
		l.warm = l.warm[1:]
	}
	if l.count-len(dead) >= l.set.Max {
		l.mu.Unlock()
		return schema.Errorf(schema.KindUnavailable, "All %d processes of the server %q are leased; try again a little later, or raise state.episodes.", l.set.Max, l.served.Session.Spec.ID).RetryableAfter(time.Second)
	}
	l.count++
	l.open[id] = nil
	l.mu.Unlock()
	endDead()
	one, err := l.begin(l.ctx, q)
	l.mu.Lock()
	defer l.mu.Unlock()
	_, wanted := l.open[id]
	delete(l.open, id)
	if err != nil {
		l.count--
		l.want()
		if sentence, ok := errors.AsType[*schema.Error](err); ok {
			return sentence
		}
		return schema.Errorf(schema.KindServerFailed, "A process of the server %q could not be started: %w", l.served.Session.Spec.ID, err)
	}
	if l.ctx.Err() != nil {
		dead = append(dead, one)
		return schema.Errorf(schema.KindUnavailable, "The processes of the server %q are being ended.", l.served.Session.Spec.ID)
	}
	if !wanted { // its holder gave up, so nothing else would end it
		dead = append(dead, one)
		return schema.Errorf(schema.KindServerFailed, "The lease was closed while its process started.")
	}
	l.hand(id, one)
	return nil
}

// give ends a lease. An unknown id is ignored. If the process of the lease is still starting, it
// ends once it has started.
func (l *leases) give(id string) {
	l.mu.Lock()
	one := l.open[id]
	delete(l.open, id)
	l.mu.Unlock()
	if one != nil {
		l.end(one)
	}
}

// end ends a process and removes its directory.
func (l *leases) end(one *lease) {
	if one.to != nil {
		one.to.Close()
	} else {
		one.one.Close()
	}
	if one.dir != "" {
		if err := dirstate.Remove(one.dir); err != nil {
			l.w.log.Warn("the directory of an episode was not removed", "directory", one.dir, "error", err)
		}
	}
	l.mu.Lock()
	l.count--
	l.mu.Unlock()
	l.want()
}

// digest returns the digest of a lease's directory. If the holder left the directory in a state
// without a digest, it returns [bus.UnusableState] with the reason.
func (l *leases) digest(id string) (string, error) {
	l.mu.Lock()
	one := l.open[id]
	l.mu.Unlock()
	if one == nil {
		return "", schema.Errorf(schema.KindServerFailed, "The lease has ended.")
	}
	if l.dialed || l.pool != nil {
		return "", nil // its state is elsewhere
	}
	sum, err := dirstate.Digest(one.dir)
	if errors.Is(err, dirstate.ErrUnusable) {
		l.mu.Lock()
		ended := l.open[id] != one
		l.mu.Unlock()
		if ended { // the directory was removed when the lease ended
			return "", schema.Errorf(schema.KindServerFailed, "The lease has ended.")
		}
		l.w.log.Info("the state of an episode has no digest, so it counts as different from that of the labelled calls", "server", l.served.Session.Spec.ID, "error", err)
		return bus.UnusableState + dirstate.Reason(err), nil
	}
	if err != nil {
		return "", schema.Errorf(schema.KindUnavailable, "The state cannot be read: %w", err)
	}
	return sum, nil
}

// sweep ends unused leases.
func (l *leases) sweep() {
	tick := time.NewTicker(leaseSweep)
	defer tick.Stop()
	for {
		select {
		case <-l.ctx.Done():
			return
		case now := <-tick.C:
			l.mu.Lock()
			var idle []string
			for id, one := range l.open {
				if one != nil && one.busy == 0 && now.Sub(one.used) > l.set.Idle {
					idle = append(idle, id)
				}
			}
			l.mu.Unlock()
			for _, id := range idle {
				l.w.log.Info("a lease was ended, because nobody used it", "server", l.served.Session.Spec.ID)
				l.give(id)
			}
		}
	}
}

// close ends all processes. The outcome of their running calls is unknown.
func (l *leases) close() {
	l.stop()
	l.mu.Lock()
	all := l.warm
	l.warm = nil
	for id, one := range l.open {
		if one != nil {
			all = append(all, one)
		}
		delete(l.open, id)
	}
	l.mu.Unlock()
	var ending sync.WaitGroup
	for _, one := range all {
		ending.Go(func() { l.end(one) })
	}
	ending.Wait()
	l.work.Wait()
	l.dropSnapshots()
	if l.solo != nil {
		l.solo.Close()
	}
	if l.set.Base != "" {
		l.w.launcher.Forget(l.note())
	}
}
