package records

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/callyard/callyard/internal/tenants/datakey"
	"github.com/callyard/callyard/internal/tenants/retention"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

// Options of a recorder. The zero value of each means its default.
type Options struct {
	// FrontDoor is the id of this front door, new at each start. It must be set.
	FrontDoor string
	// Alive says whether a front door, by its id, is there or may be: it returns
	// true for those of which it has not heard yet. Without it everybody is. It
	// is called on the goroutine of a reader.
	Alive func(frontDoor string) bool
	// MaxAge is how long records are kept (7 days; below zero for ever), and
	// MaxBytes the room they take, where the oldest make way (1 GiB; below zero
	// without bound). Both count when the stream is made.
	MaxAge   time.Duration
	MaxBytes int64
	// Queue is how many records may wait to be stored: 65,536.
	Queue int
	// DataKeys encrypt why calls failed, which can repeat what a server said; nil: nothing is
	// encrypted.
	DataKeys *datakey.Ring
	// Retention says of which tenants the sentences of errors are withheld before the stream
	// forgets the record. They are stored with those of others, in one message, so that they
	// cannot be removed sooner.
	Retention retention.Periods
	// Log receives what cannot be told to a caller. It must be set.
	Log *slog.Logger
}

const (
	defaultMaxAge   = 7 * 24 * time.Hour
	defaultMaxBytes = 1 << 30
	defaultQueue    = 64 << 10

	// gatherTime is how long a record waits for others, at most.
	gatherTime = 100 * time.Millisecond
	// gatherCount and gatherBytes bound what is stored in one message.
	gatherCount = 1000
	gatherBytes = 256 << 10
	// runningAfter is how long a call runs before that is written.
	runningAfter = 2 * time.Second

	// hashBytes is the most that is hashed on the call's path: 64 KiB take some
	// 40 µs, where such a call takes half a millisecond.
	hashBytes = 64 << 10
	// keptBytes bounds the arguments that wait to be hashed off the path.
	keptBytes = 32 << 20

	shardCount = 8

	storeTimeout = 5 * time.Second
	retryWait    = 250 * time.Millisecond
	closeTimeout = 10 * time.Second
	tellEvery    = 10 * time.Second
)

// Recorder writes the records of one front door and reads those of all. All
// methods are safe for concurrent use.
type Recorder struct {
	store     *store
	frontDoor string
	alive     func(string) bool
	log       *slog.Logger
	ring      *datakey.Ring
	retention retention.Periods
	now       func() time.Time
	most      int // records that may wait in one shard

	shards [shardCount]shard
	kept   atomic.Int64 // bytes of arguments that wait to be hashed

	indexes indexes // for readers

	asleep  atomic.Bool   // nothing waits and no timer runs
	wake    chan struct{} // something waits again, or enough for a message does
	asks    chan chan error
	stop    chan struct{}
	done    chan struct{}
	closing sync.Once

	written, lost atomic.Uint64
}

// shard is a part of the calls, so that callers seldom wait for each other.
type shard struct {
	mu      sync.Mutex
	young   list    // calls that run, and of which nothing was written
	waiting []*Call // records to be stored
	spare   []*Call // the memory of what waited before
	closed  bool
	_       [64]byte // no two shards in one cache line
}

// list is a list of calls in the order in which they were begun.
type list struct{ first, last *Call }

func (l *list) push(c *Call) {
	if c.before = l.last; c.before == nil {
		l.first = c
	} else {
		c.before.after = c
	}
	l.last = c
}

func (l *list) remove(c *Call) {
	if c.before == nil {
		l.first = c.after
	} else {
		c.before.after = c.after
	}
	if c.after == nil {
		l.last = c.before
	} else {
		c.after.before = c.before
	}
	c.before, c.after = nil, nil
}

// Stats counts since the start of the recorder.
type Stats struct {
	// Written records were stored.
	Written uint64
	// Lost records were dropped, because too many waited or they could not be
	// stored at the end.
	Lost uint64
	// Waiting records are not stored yet.
	Waiting int
}

// Open opens the execution log, making its stream when it is missing; ctx bounds
// that. The connection stays the caller's; it is best one of the recorder's own.
func Open(ctx context.Context, conn *bus.Conn, o Options) (*Recorder, error) {
	store, err := openStore(ctx, conn, o)
	if err != nil {
		return nil, err
	}
	r := &Recorder{
		store: store, frontDoor: o.FrontDoor, alive: o.Alive, log: o.Log, ring: o.DataKeys, retention: o.Retention, now: time.Now, most: max(cmp.Or(o.Queue, defaultQueue)/shardCount, 1),
		wake: make(chan struct{}, 1), asks: make(chan chan error), stop: make(chan struct{}), done: make(chan struct{}),
	}
	r.asleep.Store(true)
	go newWriter(r).run()
	return r, nil
}

// Stats returns the counts of now.
func (r *Recorder) Stats() Stats {
	s := Stats{Written: r.written.Load(), Lost: r.lost.Load()}
	for i := range r.shards {
		sh := &r.shards[i]
		sh.mu.Lock()
		s.Waiting += len(sh.waiting)
		sh.mu.Unlock()
	}
	return s
}

// Sync waits until all that the recorder was told before is stored, the calls
// that run included, or until ctx ends.
func (r *Recorder) Sync(ctx context.Context) error {
	stored := make(chan error, 1)
	select {
	case r.asks <- stored:
	case <-ctx.Done():
		return lateError(ctx.Err())
	case <-r.done:
		return nil // what there was is stored, or lost and counted
	}
	select {
	case err := <-stored:
		return err
	case <-ctx.Done():
		return lateError(ctx.Err())
	case <-r.done:
		return nil
	}
}

func lateError(cause error) error {
	return schema.Errorf(schema.KindUnavailable, "The call records cannot be stored at the moment; check that NATS is running and has disk space. (%w)", cause)
}

// Close stores what waits, as far as that takes no more than 10 s, and waits for
// the recorder's goroutine. Calls that still run are left as running. What is
// told later is dropped.
func (r *Recorder) Close() {
	r.closing.Do(func() { close(r.stop) })
	<-r.done
}
