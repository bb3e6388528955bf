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
	lookEvery       = 5 * time.Second        // interval of checks of a ready engine and image
	learnTime       = time.Minute            // for the first container, on a busy engine
	killGrace       = 250 * time.Millisecond // so that the call's own timeout ends it first
	startsEach      = 4                      // calls that may run or wait per concurrent start
	sandboxTimedOut = "deadline"
)

// pauses sets the pauses between attempts to prepare the sandbox, or to start a process in advance.
var pauses = backoff.Policy{First: time.Second, Max: 15 * time.Second}

// sandboxed runs calls of one server in containers or sandboxes. Each call has its own, which is
// destroyed afterwards. Nothing runs outside of them.
type sandboxed struct {
	id      schema.ServerID
	sandbox *Sandbox
	in      isolation
	solo    *session.Solo
	metrics *telemetry.Metrics
	log     *slog.Logger
	changed func()
	timeout time.Duration // of a call without a timeout
	slots   int
	places  chan struct{} // one per call that has a container or is about to get one

	stopped context.Context // canceled when nothing more is prepared
	stop    context.CancelFunc
	keeper  sync.WaitGroup
	doubt   chan struct{} // signaled when a call could not get a container

	callGroup // its lock guards the fields below
	state     schema.InitializationState
	fault     string // the reason why state is not initialized, a sentence
	tail      string
	defs      *schema.Definitions
	digest    string
	tools     string // digest of the tools alone
	about     schema.Server
	running   map[*session.Single]struct{}
}

// openSandboxed starts preparing containers for a server.
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
		b.in = &sandboxes{sandbox: s.Sandbox, launcher: w.launcher, greet: b.handshake, start: cfg.StartTimeout}
	} else {
		b.in = &containers{sandbox: s.Sandbox, engine: w.engine, greet: b.handshake, start: cfg.StartTimeout, log: b.log}
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

// keep prepares the sandbox and monitors it until the worker stops.
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

// look returns the reason when calls can no longer get a container.
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

// pause waits, but stops early if a call could not get a container.
func (b *sandboxed) pause(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-b.doubt:
	case <-b.stopped.Done():
	}
}

// prepare looks up what is needed and learns the definitions of the server from a first container.
// After that it only checks whether containers are still available.
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

// learn uses one container to learn the definitions of the server.
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

// handshake opens the session of a new container or sandbox and compares its tools with those that
// were learned; see [sandbox.Handshake].
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

// become records the state, and logs and announces it if it changed.
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

// report returns the isolation of calls and its state.
func (b *sandboxed) report() *schema.Sandbox {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := &schema.Sandbox{Isolation: b.sandbox.Isolation, Image: b.sandbox.Image, Only: b.sandbox.Only, Ready: b.state == schema.StateInitialized, Error: b.fault}
	if !r.Ready && r.Error == "" {
		r.Error = fmt.Sprintf("The %s of the server %q is being prepared.", b.sandbox.place(), b.id)
	}
	return r
}

// snapshot returns the current state of a server that runs in containers only.
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

// measure sets the metrics for the number of containers.
func (b *sandboxed) measure() {
	b.mu.Lock()
	inUse := len(b.running)
	b.mu.Unlock()
	b.metrics.SetSandboxes(string(b.id), b.in.warm(), inUse)
}

// close stops taking calls, lets running calls continue until ctx ends, aborts the rest, and
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
