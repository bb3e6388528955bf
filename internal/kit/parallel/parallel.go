// Package parallel distributes many small independent tasks over all processors.
//
// It owns the goroutines and the choice of the error. It does not know the tasks, and limits
// only their concurrency.
package parallel

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
)

// chunk is the maximum number of tasks that a goroutine takes at a time.
const chunk = 64

// Each calls do for 0 to n-1 on as many goroutines as there are processors, and waits for
// them. It stops early after an error, and when ctx ends. It returns the error with the lowest
// index of those that occurred, else that of ctx.
func Each(ctx context.Context, n int, do func(i int) error) error {
	var next atomic.Int64
	var workers sync.WaitGroup
	var lock sync.Mutex
	var fault error
	at, most := n, runtime.GOMAXPROCS(0)
	chunk := max(1, min(chunk, n/(4*most)))
	for range min(most, n/chunk+1) {
		workers.Go(func() {
			for ctx.Err() == nil {
				from := int(next.Add(int64(chunk))) - chunk
				if from >= n {
					return
				}
				for i := from; i < min(from+chunk, n); i++ {
					if err := do(i); err != nil {
						lock.Lock()
						if i < at {
							at, fault = i, err
						}
						lock.Unlock()
						next.Store(int64(n)) // lower indexes are already taken
						return
					}
				}
			}
		})
	}
	workers.Wait()
	if fault != nil {
		return fault
	}
	return ctx.Err()
}
