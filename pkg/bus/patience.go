package bus

import (
	"context"
	"sync"
	"time"
)

// WithPatience returns a context that ends when ctx ends, when cancel is called, or after the
// given time without progress. Progress is each message that a watch or scan reads while it is
// being opened with the context, because a large store takes long to read. If the time passes, the
// error of the context is [context.DeadlineExceeded].
func WithPatience(ctx context.Context, patience time.Duration) (opening context.Context, cancel context.CancelFunc) {
	p := &patient{Context: ctx, patience: patience, done: make(chan struct{})}
	p.mu.Lock() // so that the function of the timer sees the timer
	p.timer = time.AfterFunc(patience, func() { p.end(context.DeadlineExceeded) })
	p.mu.Unlock()
	unlink := context.AfterFunc(ctx, func() { p.end(ctx.Err()) })
	return p, func() {
		unlink()
		p.end(context.Canceled)
	}
}

// patient is a context whose deadline moves. Contexts of package context have fixed deadlines.
type patient struct {
	context.Context
	patience time.Duration
	timer    *time.Timer
	done     chan struct{}

	mu  sync.Mutex
	err error
}

// progressKey is the key of the function of a context that is called when something was read.
type progressKey struct{}

func (p *patient) Done() <-chan struct{} { return p.done }

func (p *patient) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

func (p *patient) Value(key any) any {
	if key == (progressKey{}) {
		return p.progress
	}
	return p.Context.Value(key)
}

func (p *patient) end(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil {
		return
	}
	p.err = err
	p.timer.Stop()
	close(p.done)
}

// progress starts the time again.
func (p *patient) progress() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err == nil {
		p.timer.Reset(p.patience)
	}
}

// progressOf returns the function that tells a context of [WithPatience], or one derived from it, that
// something was read. For other contexts it does nothing.
func progressOf(ctx context.Context) func() {
	if progress, ok := ctx.Value(progressKey{}).(func()); ok {
		return progress
	}
	return func() {}
}
