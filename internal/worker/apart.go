package worker

import (
	"context"
	"sync"
	"time"
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
// called, where nothing more is taken.
func (a *apart) begin(j *job, timeout time.Duration, run func(ctx context.Context, deadline time.Time)) bool {
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
