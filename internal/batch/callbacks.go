package batch

import (
	"context"
	"sync"
)

// callbacksOwed counts the callbacks of a journal's calls that the outbox has not stored yet. Only the
// owner of a journal that has not ended sends them again, so a journal must not end before. It is safe
// for concurrent use.
type callbacksOwed struct {
	mu      sync.Mutex
	waiting int
	dropped bool
	changed chan struct{} // signaled when waiting reaches 0, or a callback was dropped
}

func newCallbacksOwed() *callbacksOwed { return &callbacksOwed{changed: make(chan struct{}, 1)} }

// owe adds a callback. stored must be called once: with true when nobody has to send it again, and with
// false if it was dropped.
func (o *callbacksOwed) owe() (stored func(bool)) {
	o.mu.Lock()
	o.waiting++
	o.mu.Unlock()
	return func(ok bool) {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.waiting--
		o.dropped = o.dropped || !ok
		if o.waiting == 0 || !ok {
			notify(o.changed)
		}
	}
}

// wait waits until all callbacks are stored. It returns false if ctx ends before, or one was dropped.
func (o *callbacksOwed) wait(ctx context.Context) bool {
	for {
		o.mu.Lock()
		waiting, dropped := o.waiting, o.dropped
		o.mu.Unlock()
		if waiting == 0 || dropped {
			return !dropped
		}
		select {
		case <-o.changed:
		case <-ctx.Done():
			return false
		}
	}
}
