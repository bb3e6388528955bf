// Package notify carries word of approvals to places outside the approver's own
// pages: to channels of Slack, and to receivers of webhooks.
//
// It owns the seam between the ledger and those places ([Channel]), and the patience:
// a [Feed] sees every change of every approval and brings each place up to date,
// one line for each place, tried again until it works. It promises that nobody who
// decides ever waits for a place, that a slow or broken one holds up itself alone,
// and that of many changes the newest counts: what a place missed is made up for
// with the state as it stands, also after a restart.
//
// It refuses to know what a place shows; and it decides nothing.
package notify

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/callyard/callyard/internal/kit/backoff"
	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/pkg/schema"
)

// Channel is a notification channel: a way to tell people or programs of approvals. Slack is one, webhooks
// are the other. Its methods are called from several goroutines, [Channel.Show] by
// one at a time for each place.
type Channel interface {
	// Places are where the approval, as it stands, is or was to be told of. It must
	// not block, and looks at what is known here only.
	Places(a *ledger.Approval) []string
	// Show brings a place up to date with the approval as it stands; where it is
	// already, that does nothing. An error means that it is to be tried again: see
	// [Wait], and [Never].
	Show(ctx context.Context, place string, a *ledger.Approval) error
}

// Wait is the error of a channel that says when to try again.
type Wait struct {
	For time.Duration
	// Alone says that it is this approval's business; without it nothing else is
	// tried at the place until then.
	Alone bool
	Err   error
}

func (w *Wait) Error() string { return w.Err.Error() }

// Unwrap returns the cause.
func (w *Wait) Unwrap() error { return w.Err }

// Never is the error of a channel for what no further try repairs.
type Never struct{ Err error }

func (n *Never) Error() string { return n.Err.Error() }

// Unwrap returns the cause.
func (n *Never) Unwrap() error { return n.Err }

// pauses are between tries at a place that fails: short enough that it is right
// within seconds of its recovery.
var pauses = backoff.Policy{First: 250 * time.Millisecond, Max: 2 * time.Second, Jitter: 0.25}

// showFor bounds one try.
const showFor = 15 * time.Second

// closeFor bounds the wait for the notifications under way when a feed closes.
const closeFor = 2 * time.Second

// Options of a feed. Ledger, Channel and Log must be set.
type Options struct {
	Ledger  *ledger.Ledger
	Channel Channel
	// Name is what the log calls the channel.
	Name string
	Log  *slog.Logger
}

// Feed keeps one channel up to date. It is safe for concurrent use.
type Feed struct {
	o      Options
	stop   func()          // of the watch
	ctx    context.Context // ends the waiting for approvals
	cancel context.CancelFunc
	life   context.Context // ends what is being shown
	abort  context.CancelFunc
	work   sync.WaitGroup

	mu    sync.Mutex
	lanes map[string]*lane
	shut  bool
}

// Start begins to feed a channel: with everything that the ledger holds, then with
// each change. [Feed.Close] ends it.
func Start(o Options) *Feed {
	f := &Feed{o: o, lanes: make(map[string]*lane)}
	f.life, f.abort = context.WithCancel(context.Background())
	f.ctx, f.cancel = context.WithCancel(f.life)
	f.stop = o.Ledger.Watch(schema.AllTenants(), f.offer)
	for _, a := range o.Ledger.Where(schema.AllTenants(), func(*ledger.Approval) bool { return true }) {
		f.offer(a)
	}
	return f
}

// Close takes no more and waits for the notifications under way, [closeFor] at most: one
// that is interrupted between the message and the note of it is sent again after the next
// start. What was not sent is sent then.
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

// offer puts an approval into the line of each of its places.
func (f *Feed) offer(a *ledger.Approval) {
	for _, place := range f.o.Channel.Places(a) {
		f.mu.Lock()
		if f.shut {
			f.mu.Unlock()
			return
		}
		l := f.lanes[place]
		if l == nil {
			l = newLane()
			f.lanes[place] = l
			f.work.Go(func() { f.run(place, l) })
		}
		f.mu.Unlock()
		l.put(a.ID)
	}
}

// run serves one place until the feed ends.
func (f *Feed) run(place string, l *lane) {
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
	// From the leader: word of a change may be ahead of the copy that is nearest.
	a, err := f.o.Ledger.Current(ctx, schema.AllTenants(), id)
	if schema.KindOf(err) == schema.KindNotFound {
		return nil // it grew too old
	}
	if err != nil {
		return err
	}
	return f.o.Channel.Show(ctx, place, a)
}

// lane is the line of approvals before one place; each stands in it once.
type lane struct {
	wake chan struct{}

	mu     sync.Mutex
	order  []schema.ApprovalID
	items  map[schema.ApprovalID]*item
	closed time.Time // nothing is taken before
	tries  int       // failed ones in a row
}

type item struct {
	after  time.Time
	queued bool
	again  bool // it changed while it was shown
	busy   bool
}

func newLane() *lane {
	return &lane{wake: make(chan struct{}, 1), items: make(map[schema.ApprovalID]*item)}
}

func (l *lane) put(id schema.ApprovalID) {
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

// next waits for the first that may be shown.
func (l *lane) next(ctx context.Context) (schema.ApprovalID, error) {
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

// take returns the first that is due, or for how long there is none.
func (l *lane) take(now time.Time) (schema.ApprovalID, time.Duration) {
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
		l.order = append(l.order[:i:i], l.order[i+1:]...)
		it.queued, it.busy = false, true
		return id, 0
	}
	return "", soonest
}

// done says that showing id has ended: for good when after is zero and it has not
// changed meanwhile, else until after. place closes the whole line until then.
func (l *lane) done(id schema.ApprovalID, after time.Time, place bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	it := l.items[id]
	again := it.again
	it.busy, it.again = false, false
	if after.IsZero() && !again {
		delete(l.items, id)
		return
	}
	it.after, it.queued = after, true
	if place {
		l.closed = after
		l.order = append([]schema.ApprovalID{id}, l.order...) // it keeps its place in the order
		it.after = time.Time{}
		return
	}
	l.order = append(l.order, id)
}

func (l *lane) well() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tries = 0
}

// pause is how long to wait after one more failed try.
func (l *lane) pause() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	d := pauses.Delay(l.tries)
	l.tries++
	return d
}
