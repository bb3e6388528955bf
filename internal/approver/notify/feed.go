// Package notify sends notifications of approvals to places outside the approver's pages:
// Slack channels and webhook receivers.
//
// It owns the interface between the ledger and those places ([Channel]), and the retries. A
// [Feed] receives every change of every approval and brings each place up to date. Each place has
// its own queue, and a notification is retried until it succeeds. Decisions never wait for a
// place, and a slow or broken place delays only itself. Several changes of an approval are sent as
// its current state. Changes missed by a place are sent the same way, also after a restart.
//
// It does not know the content of a place, and it makes no decisions.
package notify

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/callyard/callyard/internal/kit/backoff"
	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/pkg/schema"
)

// Channel is a notification channel: a way to notify people or programs of approvals. Slack
// and webhooks are the implementations. Its methods are called from several goroutines.
// [Channel.Show] is called by one goroutine at a time for each place.
type Channel interface {
	// Places returns the places that show the approval in its current state, or must be updated.
	// It must not block, and uses only local data.
	Places(a *ledger.Approval) []string
	// Show brings a place up to date with the current state of the approval. It does nothing if
	// the place is up to date. A returned error causes a retry: see [Wait] and [Never].
	Show(ctx context.Context, place string, a *ledger.Approval) error
}

// Wait is an error of a channel with the time until the next attempt.
type Wait struct {
	For time.Duration
	// Alone limits the wait to this approval. If false, the whole place is paused until then.
	Alone bool
	Err   error
}

func (w *Wait) Error() string { return w.Err.Error() }

// Unwrap returns the cause.
func (w *Wait) Unwrap() error { return w.Err }

// Never is an error of a channel that no retry can fix.
type Never struct{ Err error }

func (n *Never) Error() string { return n.Err.Error() }

// Unwrap returns the cause.
func (n *Never) Unwrap() error { return n.Err }

// pauses is the backoff for a place that fails. It is short, so that the place is up to date within
// seconds of its recovery.
var pauses = backoff.Policy{First: 250 * time.Millisecond, Max: 2 * time.Second, Jitter: 0.25}

// manyTries is the number of failed attempts after which an approval that waits alone is logged. A few
// are normal: another approver may be sending the same notification.
const manyTries = 20

// longWait is the time from which a wait for the next attempt is logged at once.
const longWait = 15 * time.Second

// showFor is the timeout of one attempt.
const showFor = 15 * time.Second

// closeFor limits the wait for notifications in flight when a feed closes.
const closeFor = 2 * time.Second

// Options configures a feed. Ledger, Channel and Log must be set.
type Options struct {
	Ledger  *ledger.Ledger
	Channel Channel
	// Name is the name of the channel in the log.
	Name string
	Log  *slog.Logger
}

// Feed keeps one channel up to date. It is safe for concurrent use.
type Feed struct {
	o      Options
	stop   func()          // stops the watch
	ctx    context.Context // ends the wait for approvals
	cancel context.CancelFunc
	life   context.Context // cancels notifications in flight
	abort  context.CancelFunc
	work   sync.WaitGroup

	mu     sync.Mutex
	queues map[string]*queue
	shut   bool
}

// Start starts a feed for a channel. It first sends everything that the ledger holds, then each
// change. [Feed.Close] ends it.
func Start(o Options) *Feed {
	f := &Feed{o: o, queues: make(map[string]*queue)}
	f.life, f.abort = context.WithCancel(context.Background())
	f.ctx, f.cancel = context.WithCancel(f.life)
	f.stop = o.Ledger.Watch(schema.AllTenants(), f.offer)
	for _, a := range o.Ledger.Where(schema.AllTenants(), func(*ledger.Approval) bool { return true }) {
		f.offer(a)
	}
	return f
}

// Close refuses new approvals and waits for notifications in flight, for at most [closeFor]. A
// notification that is interrupted after it is sent and before that is stored is sent again after
// the next start. Notifications not sent yet are also sent after the next start.
func (f *Feed) Close() {
	f.mu.Lock()
	f.shut = true
	f.mu.Unlock()
	f.stop()
	f.cancel()
	late := time.AfterFunc(closeFor, f.abort)
	f.work.Wait()
	late.Stop()
	f.abort()
}

// offer adds an approval to the queue of each of its places.
func (f *Feed) offer(a *ledger.Approval) {
	for _, place := range f.o.Channel.Places(a) {
		f.mu.Lock()
		if f.shut {
			f.mu.Unlock()
			return
		}
		l := f.queues[place]
		if l == nil {
			l = newQueue()
			f.queues[place] = l
			f.work.Go(func() { f.run(place, l) })
		}
		f.mu.Unlock()
		l.put(a.ID)
	}
}

// run sends the notifications of one place until the feed ends.
func (f *Feed) run(place string, l *queue) {
	down := false
	for {
		id, err := l.next(f.ctx)
		if err != nil {
			return
		}
		err = f.show(place, id)
		if f.ctx.Err() != nil {
			return
		}
		var wait *Wait
		var never *Never
		switch {
		case err == nil:
			if down {
				f.o.Log.Info("a notification channel accepts notifications again", "channel", f.o.Name, "approval_id", id)
			}
			down = false
			l.done(id, time.Time{}, false)
			l.well()
			continue
		case errors.As(err, &never):
			f.o.Log.Error("a notification channel cannot be notified of an approval", "channel", f.o.Name, "approval_id", id, "error", err)
			l.done(id, time.Time{}, false)
			continue
		case errors.As(err, &wait):
			l.done(id, time.Now().Add(wait.For), !wait.Alone)
			if n := l.failed(id); wait.Alone && (n == manyTries && wait.For < longWait || n == 1 && wait.For >= longWait) {
				f.o.Log.Warn("a notification channel cannot be notified of an approval at the moment; it is tried again", "channel", f.o.Name, "approval_id", id, "error", err)
			}
		default:
			l.done(id, time.Now().Add(l.pause()), true)
		}
		if !down && (wait == nil || !wait.Alone) {
			f.o.Log.Warn("a notification channel cannot be notified at the moment; it is tried again", "channel", f.o.Name, "approval_id", id, "error", err)
			down = true
		}
	}
}

func (f *Feed) show(place string, id schema.ApprovalID) error {
	ctx, cancel := context.WithTimeout(f.life, showFor)
	defer cancel()
	// Read from the leader: the nearest replica may not have the change yet.
	a, err := f.o.Ledger.Current(ctx, schema.AllTenants(), id)
	if schema.KindOf(err) == schema.KindNotFound {
		return nil // removed because of its age
	}
	if err != nil {
		return err
	}
	return f.o.Channel.Show(ctx, place, a)
}

// queue is the queue of one place. Each approval is in it at most once.
type queue struct {
	wake chan struct{}

	mu     sync.Mutex
	order  []schema.ApprovalID
	items  map[schema.ApprovalID]*item
	closed time.Time // the queue is paused until then
	tries  int       // consecutive failed attempts
}

type item struct {
	after  time.Time
	queued bool
	again  bool // it changed while it was shown
	busy   bool
	failed int // consecutive failed attempts
}

func newQueue() *queue {
	return &queue{wake: make(chan struct{}, 1), items: make(map[schema.ApprovalID]*item)}
}

func (l *queue) put(id schema.ApprovalID) {
	l.mu.Lock()
	it := l.items[id]
	switch {
	case it == nil:
		l.items[id] = &item{queued: true}
		l.order = append(l.order, id)
	case it.busy:
		it.again = true
	case !it.queued:
		it.queued = true
		l.order = append(l.order, id)
	}
	l.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// next waits for the first approval that is due.
func (l *queue) next(ctx context.Context) (schema.ApprovalID, error) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		id, wait := l.take(time.Now())
		if id != "" {
			return id, nil
		}
		timer.Reset(wait)
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-l.wake:
		case <-timer.C:
		}
	}
}

// take removes and returns the first approval that is due, or returns the time until one is.
func (l *queue) take(now time.Time) (schema.ApprovalID, time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if wait := l.closed.Sub(now); wait > 0 {
		return "", wait
	}
	soonest := time.Hour
	for i, id := range l.order {
		it := l.items[id]
		if wait := it.after.Sub(now); wait > 0 {
			soonest = min(soonest, wait)
			continue
		}
		l.order = slices.Delete(l.order, i, i+1)
		it.queued, it.busy = false, true
		return id, 0
	}
	return "", soonest
}

// done records the end of an attempt for id. If after is zero and the approval has not changed in
// the meantime, it leaves the queue. Otherwise it is due again at after. place pauses the whole
// queue until then.
func (l *queue) done(id schema.ApprovalID, after time.Time, place bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	it := l.items[id]
	again := it.again
	it.busy, it.again = false, false
	if after.IsZero() && !again {
		delete(l.items, id)
		return
	}
	if it.after, it.queued = after, true; after.IsZero() {
		it.failed = 0
	} else {
		it.failed++
	}
	if place {
		l.closed = after
		l.order = append([]schema.ApprovalID{id}, l.order...) // it keeps its position in the queue
		it.after = time.Time{}
		return
	}
	l.order = append(l.order, id)
}

// failed returns the number of consecutive failed attempts for id.
func (l *queue) failed(id schema.ApprovalID) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.items[id].failed
}

func (l *queue) well() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tries = 0
}

// pause returns the backoff after another failed attempt.
func (l *queue) pause() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	d := pauses.Delay(l.tries)
	l.tries++
	return d
}
