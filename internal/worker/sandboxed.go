package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"time"

	"github.com/callyard/callyard/internal/kit/backoff"
	"github.com/callyard/callyard/internal/session"
	"github.com/callyard/callyard/internal/telemetry"
	"github.com/callyard/callyard/pkg/schema"
)

const (
	lookEvery       = 5 * time.Second        // at an engine and an image that were there
	learnTime       = time.Minute            // for the first container, on an engine that is busy
	killGrace       = 250 * time.Millisecond // so that a call's own time is what ends it
	startsEach      = 4                      // calls that may run or wait for each start at a time
	sandboxTimedOut = "deadline"
)

// pauses are between tries to make the sandbox ready.
var pauses = backoff.Policy{First: time.Second, Max: 15 * time.Second}

// sandboxed runs calls of one server in containers or sandboxes, each in one of its own
// that is destroyed afterwards. It never runs anything elsewhere.
type sandboxed struct {
	id      schema.ServerID
	sandbox *Sandbox
	in      isolation
	solo    *session.Solo
	metrics *telemetry.Metrics
	log     *slog.Logger
	changed func()
	timeout time.Duration // of a call that brings none
	slots   int
	places  chan struct{} // one for each call that has a container or is about to

	stopped context.Context // ends when nothing more is prepared
	stop    context.CancelFunc
	keeper  sync.WaitGroup
	doubt   chan struct{} // holds a word when a call could not get a container

	apart   // its lock guards what follows
	state   schema.InitializationState
	fault   string // why state is not initialized, a sentence
	tail    string
	defs    *schema.Definitions
	digest  string
	tools   string // digest of the tools alone
	about   schema.Server
	running map[*session.Single]struct{}
}

// openSandboxed begins to prepare containers for a server.
func openSandboxed(w *Worker, s *Served, changed func()) *sandboxed {
	starts := w.o.Sandboxes.Starts
	if starts <= 0 {
		starts = runtime.NumCPU()
	}
	cfg := s.Session
	slots := max(1, min(max(cfg.Sessions, 1)*max(cfg.InFlight, 1), startsEach*starts+s.Sandbox.Spec.Pool))
	b := &sandboxed{
		id: cfg.Spec.ID, sandbox: s.Sandbox, solo: session.NewSolo(cfg, w.log), metrics: w.o.Metrics, log: w.log.With("server", cfg.Spec.ID),
		changed: changed, timeout: cfg.CallTimeout, slots: slots, places: make(chan struct{}, slots),
		doubt: make(chan struct{}, 1), state: schema.StateStarting, running: make(map[*session.Single]struct{}),
	}
	if s.Sandbox.Isolation == schema.IsolationBubblewrap {
		b.in = &sandboxes{sandbox: s.Sandbox, launcher: w.launcher, greet: b.handshake, start: cfg.StartTimeout, log: b.log}
	} else {
		b.in = &containers{sandbox: s.Sandbox, dock: w.dock, greet: b.handshake, start: cfg.StartTimeout, log: b.log}
	}
	b.stopped, b.stop = context.WithCancel(context.Background())
	b.calls, b.cut = context.WithCancel(context.Background())
	if s.Sandbox.Fault != nil {
		b.state, b.fault = schema.StateError, s.Sandbox.Fault.Error()
		b.log.Error("calls of high risk are refused because no sandbox is available", "isolation", s.Sandbox.Isolation, "error", b.fault)
		return b
	}
	b.keeper.Go(b.keep)
	return b
}

// keep makes the sandbox ready and looks after it until the worker stops.
func (b *sandboxed) keep() {
	for failures := 0; b.stopped.Err() == nil; failures++ {
		err := b.prepare()
		if err == nil {
			b.become(schema.StateInitialized, nil)
			failures = 0
			err = b.look()
		}
		if b.stopped.Err() != nil {
			return
		}
		b.become(schema.StateError, err)
		b.pause(pauses.Delay(failures))
	}
}

// look returns when calls cannot get a container any more, and why.
func (b *sandboxed) look() error {
	for {
		b.pause(lookEvery)
		if b.stopped.Err() != nil {
			return nil
		}
		if err := b.in.check(b.stopped); err != nil {
			return err
		}
	}
}

// pause waits, less when a call is in trouble.
func (b *sandboxed) pause(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-b.doubt:
	case <-b.stopped.Done():
	}
}

// prepare finds what is needed and learns from a first use what the server offers.
// Once that was done, it looks whether it can still be had.
func (b *sandboxed) prepare() error {
	b.mu.Lock()
	learned := b.defs != nil
	b.mu.Unlock()
	if learned {
		return b.in.check(b.stopped)
	}
	if err := b.in.prepare(b.stopped); err != nil {
		return err
	}
	return b.learn()
}

// learn uses one up to learn what the server offers.
func (b *sandboxed) learn() error {
	ctx, cancel := context.WithTimeout(b.stopped, learnTime)
	defer cancel()
	use, err := b.in.take(ctx, "callyard", time.Now().Add(learnTime))
	if err != nil {
		return err
	}
	defer use.release()
	defs, sum := use.session.Definitions()
	b.mu.Lock()
	b.defs, b.digest, b.tools, b.about = defs, sum, toolsDigest(defs), use.session.Snapshot()
	b.mu.Unlock()
	return nil
}

func toolsDigest(defs *schema.Definitions) string {
	return (&schema.Definitions{Tools: defs.Tools}).Digest()
}

var errOtherTools = errors.New("its tools differ from those at the start of the worker")

// handshake opens the session of what was just started and holds its tools against
// those that were learned; see [sandbox.Handshake].
func (b *sandboxed) handshake(ctx context.Context, on session.Process) (*session.Single, error) {
	one, err := b.solo.Open(ctx, on)
	if err != nil {
		return nil, err
	}
	defs, _ := one.Definitions()
	b.mu.Lock()
	want := b.tools
	b.mu.Unlock()
	if want != "" && toolsDigest(defs) != want {
		one.Close()
		return nil, errOtherTools
	}
	b.metrics.SandboxStarted(string(b.id))
	return one, nil
}

// become notes how things stand, and says so where that is news.
func (b *sandboxed) become(state schema.InitializationState, err error) {
	fault, tail := "", ""
	if err != nil {
		fault, tail = schema.AsError(err).Detail, session.Tail(err)
	}
	b.mu.Lock()
	news := state != b.state || fault != b.fault
	b.state, b.fault, b.tail = state, fault, tail
	b.mu.Unlock()
	if !news {
		return
	}
	if err != nil {
		b.log.Error("calls of high risk are refused because no sandbox is available", "isolation", b.sandbox.Isolation, "error", fault)
	} else {
		b.log.Info("calls of high risk can run", "isolation", b.sandbox.Isolation, "image", b.sandbox.Image)
	}
	b.changed()
}

// report says how calls run here.
func (b *sandboxed) report() *schema.Sandbox {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := &schema.Sandbox{Isolation: b.sandbox.Isolation, Image: b.sandbox.Image, Only: b.sandbox.Only, Ready: b.state == schema.StateInitialized, Error: b.fault}
	if !r.Ready && r.Error == "" {
		r.Error = fmt.Sprintf("The %s of the server %q is being prepared.", b.sandbox.place(), b.id)
	}
	return r
}

// snapshot is the server as it stands, where it runs in containers only.
func (b *sandboxed) snapshot() schema.Server {
	b.mu.Lock()
	defer b.mu.Unlock()
	return schema.Server{
		ID: b.id, State: b.state, Transport: "stdio", Digest: b.digest, Slots: b.slots, Sessions: len(b.running), Timeout: b.timeout,
		Protocol: b.about.Protocol, Title: b.about.Title, Version: b.about.Version, Error: b.fault, StderrTail: b.tail,
	}
}

func (b *sandboxed) definitions() (*schema.Definitions, string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.defs, b.digest
}

// measure says how many containers there are.
func (b *sandboxed) measure() {
	b.mu.Lock()
	inUse := len(b.running)
	b.mu.Unlock()
	b.metrics.SetSandboxes(string(b.id), b.in.warm(), inUse)
}

// close takes no more calls, lets those that it has run until ctx ends, ends the rest, and
// returns when every container is gone.
func (b *sandboxed) close(ctx context.Context) error {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.stop()
	over := make(chan struct{})
	go func() {
		defer close(over)
		b.work.Wait()
	}()
	var err error
	select {
	case <-over:
	case <-ctx.Done():
		b.cut()
		b.mu.Lock()
		n := len(b.running)
		left := make([]*session.Single, 0, n)
		for one := range b.running {
			left = append(left, one)
		}
		b.mu.Unlock()
		var closing sync.WaitGroup
		for _, one := range left {
			closing.Go(one.Close)
		}
		closing.Wait()
		if n > 0 {
			err = fmt.Errorf("closing the sandboxes of server %q: %d calls were interrupted: %w", b.id, n, ctx.Err())
		}
		<-over
	}
	b.cut()
	b.keeper.Wait()
	b.in.close()
	return err
}
