// Package parallel does work that consists of many small independent parts on all processors.
//
// It owns the goroutines and the choice of the error; it refuses to know what the parts are,
// and to limit anything but their number at a time.
package parallel

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
)

// chunk is how many parts a goroutine takes at a time, at most.
const chunk = 64

// Each calls do for 0 to n-1 on as many goroutines as there are processors, and waits for
// them. It stops early after an error, and when ctx ends. It returns the first error in the
// order of the numbers, of those that occurred, else that of ctx.
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
						next.Store(int64(n)) // parts before this one are taken already
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
