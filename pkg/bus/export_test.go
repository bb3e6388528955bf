package bus

import (
	"context"
	"time"
)

// GiveUp ends the subscription of the watch, as nats.go does when it gives up.
func (t *Table[T]) GiveUp() error {
	t.watch.mu.Lock()
	sub := t.watch.sub
	t.watch.mu.Unlock()
	return sub.Unsubscribe()
}

// Hold blocks changes of the cached rows until release is called.
func (t *Table[T]) Hold() (release func()) {
	t.mu.RLock()
	return t.mu.RUnlock
}

// See sets a cached row, as the watch does. Changes must be blocked.
func (t *Table[T]) See(v T, revision uint64) {
	t.rows[t.key(&v)] = row[T]{value: v, revision: revision}
}

// Publish publishes a message of core NATS.
func (c *Conn) Publish(subject string, data []byte) error { return c.nc.Publish(subject, data) }

// SetSilentFor sets silentFor and returns a function that restores it.
func SetSilentFor(d time.Duration) (restore func()) {
	was := silentFor
	silentFor = d
	return func() { silentFor = was }
}

// Progressed tells ctx that something was read.
func Progressed(ctx context.Context) { progressOf(ctx)() }

// WithProgress returns a context that calls f when something was read.
func WithProgress(ctx context.Context, f func()) context.Context {
	return context.WithValue(ctx, progressKey{}, f)
}
