package batch

import (
	"sync"
	"time"
)

// collector is a list with many producers and one consumer, which takes all items at once.
type collector[T any] struct {
	mu   *sync.Mutex
	all  *[]T
	many chan struct{} // signaled when gatherMany items are collected
	some chan struct{} // signaled when the first item is collected
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

// take waits for items and takes all of them. If busy, it first waits briefly for more. It
// returns nil once over is closed and the list is empty.
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
		case <-c.many: // the items of this signal are taken
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
