package batch

import (
	"sync"
	"time"
)

// collector is a list that many goroutines put things into and one takes all out of.
type collector[T any] struct {
	mu   *sync.Mutex
	all  *[]T
	many chan struct{} // has a word when many are there
	some chan struct{} // has a word when any are there
}

func newCollector[T any]() collector[T] {
	return collector[T]{mu: new(sync.Mutex), all: new([]T), many: make(chan struct{}, 1), some: make(chan struct{}, 1)}
}

func (c collector[T]) put(one T) {
	c.mu.Lock()
	defer c.mu.Unlock()
	*c.all = append(*c.all, one)
	switch len(*c.all) {
	case 1:
		notify(c.some)
	case gatherMany:
		notify(c.many)
	}
}

// take waits until something is there and takes all of it; when busy it waits a moment
// for more. It returns nil when over is closed and nothing is there.
func (c collector[T]) take(over <-chan struct{}, busy bool) []T {
	for {
		if busy {
			timer := time.NewTimer(gatherFor)
			select {
			case <-c.many:
			case <-timer.C:
			case <-over:
			}
			timer.Stop()
		}
		c.mu.Lock()
		all := *c.all
		*c.all = nil
		select {
		case <-c.many: // those of which it tells are taken
		default:
		}
		c.mu.Unlock()
		if len(all) > 0 {
			return all
		}
		busy = false
		select {
		case <-c.some:
		case <-over:
			c.mu.Lock()
			left := len(*c.all)
			c.mu.Unlock()
			if left == 0 {
				return nil
			}
		}
	}
}
