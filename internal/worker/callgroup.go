package worker

import (
	"context"
	"sync"
	"time"

	"github.com/callyard/callyard/internal/session"
)

// callGroup runs calls that do not use shared sessions, each on its own goroutine, until it is closed.
type callGroup struct {
	calls context.Context // canceled when calls are aborted
	cut   context.CancelFunc
	work  sync.WaitGroup // one per call

	mu     sync.Mutex
	closed bool
}

// begin calls run with the job's deadline and a context. The timeout counts from now, and usual is
// the timeout of a call without one. The context ends at the deadline, when the job is abandoned,
// and when calls are aborted. If no more calls are taken, begin returns false without calling run.
func (a *callGroup) begin(j *job, usual time.Duration, run func(ctx context.Context, deadline time.Time)) bool {
	timeout := j.request.Timeout
	if timeout <= 0 {
		timeout = usual
	}
	if timeout <= 0 {
		timeout = time.Minute
	}
	deadline := time.Now().Add(timeout)
	ctx, abandon := context.WithDeadline(a.calls, deadline)
	a.mu.Lock()
	closed := a.closed
	if !closed {
		a.work.Add(1) // under the lock: drain waits for the work after it has set closed
	}
	a.mu.Unlock()
	if closed {
		abandon()
		return false
	}
	j.abandon.Store(&abandon)
	if j.ended.Load() {
		abandon()
	}
	go func() {
		defer a.work.Done()
		defer abandon()
		run(ctx, deadline)
	}()
	return true
}

// drain stops taking calls, lets running calls continue until ctx ends, and aborts the rest.
func (a *callGroup) drain(ctx context.Context) {
	a.mu.Lock()
	a.closed = true
	a.mu.Unlock()
	stop := context.AfterFunc(ctx, a.cut)
	a.work.Wait()
	stop()
	a.cut()
}

// send runs the request of the job on a session, until the deadline at most. It returns the
// running call and a channel for its outcome.
func (j *job) send(do func(*session.Request, func(*session.Request, session.Outcome)) *session.Running, deadline time.Time) (*session.Running, <-chan session.Outcome) {
	j.request.Timeout = max(time.Until(deadline).Round(time.Millisecond), time.Millisecond)
	over := make(chan session.Outcome, 1)
	running := do(&j.request, func(_ *session.Request, out session.Outcome) { over <- out })
	j.running.Store(running)
	if j.ended.Load() {
		running.Cancel()
	}
	return running, over
}
