package worker

import (
	"context"
	"sync"
	"time"

	"github.com/callyard/callyard/internal/session"
)

// apart runs calls that keep off the sessions that callers share, each on a goroutine
// of its own, until it is closed.
type apart struct {
	calls context.Context // ends when calls are aborted
	cut   context.CancelFunc
	work  sync.WaitGroup // one for each call

	mu     sync.Mutex
	closed bool
}

// begin has run called with the job's deadline, from now, and a context that ends then,
// when the job is abandoned, and when calls are aborted. It reports false, and run is not
// called, where nothing more is taken. usual is the time of a call that brings none.
func (a *apart) begin(j *job, usual time.Duration, run func(ctx context.Context, deadline time.Time)) bool {
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
		a.work.Add(1) // under the lock: close waits for the work once it has closed
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

// drain takes no more calls, lets those that run until ctx ends, and aborts the rest.
func (a *apart) drain(ctx context.Context) {
	a.mu.Lock()
	a.closed = true
	a.mu.Unlock()
	stop := context.AfterFunc(ctx, a.cut)
	a.work.Wait()
	stop()
	a.cut()
}

// send has a session run the request of the job, which may take until the deadline. It returns
// what runs, and where its end comes.
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
