package session

import (
	"context"
	"sync"
	"sync/atomic"
)

// idleRunners is the number of goroutines that wait for the next call of a native server.
const idleRunners = 64

// runners run functions on reusable goroutines. A new goroutine starts with a small stack, and
// decoding arguments makes it grow, which costs more than the call. It is safe for concurrent
// use.
type runners struct {
	next chan func()
	idle atomic.Int64
	work sync.WaitGroup
}

func newRunners() *runners { return &runners{next: make(chan func())} }

// run runs f on its own goroutine, which then waits for another function until ctx ends.
func (r *runners) run(ctx context.Context, f func()) {
	select {
	case r.next <- f:
		return
	default:
	}
	r.work.Go(func() {
		for {
			f()
			if r.idle.Add(1) > idleRunners {
				r.idle.Add(-1)
				return
			}
			select {
			case f = <-r.next:
				r.idle.Add(-1)
			case <-ctx.Done():
				return
			}
		}
	})
}
