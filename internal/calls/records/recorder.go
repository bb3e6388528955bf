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

// Options configures a recorder. Zero fields select their defaults.
type Options struct {
	// FrontDoor is the id of this front door, new at each start. Required.
	FrontDoor string
	// Alive reports whether the front door with the id is alive or may be: it must return true
	// for a front door that it has not heard of yet. If nil, all are taken as alive. Readers call it on
	// their own goroutines.
	Alive func(frontDoor string) bool
	// Owner returns the front door that owns, or last owned, the journal of a durable call, and whether
	// the journal has ended. The owner is "" if the journal is not known. Owners returns the owners of
	// all journals that have not ended. If they are nil, a front door owns the journals of its calls
	// while it is alive.
	Owner  func(call schema.CallID) (frontDoor string, ended bool)
	Owners func() map[string]bool
	// Queue limits the number of records that wait to be stored. It defaults to 65,536.
	Queue int
	// DataKeys encrypts error messages, which can repeat a server's text. If nil, they are not
	// encrypted.
	DataKeys *datakey.Ring
	// Retention gives the tenants whose error messages are hidden before the stream removes the
	// record. The messages of several tenants are stored together, so they cannot be removed earlier.
	Retention retention.Periods
	// Log receives errors that cannot be returned to a caller. Required.
	Log *slog.Logger
}

const (
	keepFor      = 7 * 24 * time.Hour
	streamBytes  = 1 << 30
	defaultQueue = 64 << 10

	// gatherTime is the maximum time that a record waits for others.
	gatherTime = 100 * time.Millisecond
	// gatherCount and gatherBytes limit the records in one message.
	gatherCount = 1000
	gatherBytes = 256 << 10
	// runningAfter is the time after which a call is recorded as running.
	runningAfter = 2 * time.Second

	// hashBytes limits the arguments that are hashed on the call's path. Hashing 64 KiB takes
	// about 40 µs; a call of that size takes half a millisecond.
	hashBytes = 64 << 10
	// keptBytes limits the arguments in memory that wait to be hashed off the path.
	keptBytes = 32 << 20

	shardCount = 8

	storeTimeout = 5 * time.Second
	retryWait    = 250 * time.Millisecond
	closeTimeout = 10 * time.Second
	tellEvery    = 10 * time.Second
)

// Recorder writes the records of one front door and reads the records of all. It is safe for
// concurrent use.
type Recorder struct {
	store     *store
	frontDoor string
	alive     func(string) bool
	owner     func(schema.CallID) (frontDoor string, ended bool)
	owners    func() map[string]bool
	log       *slog.Logger
	ring      *datakey.Ring
	retention retention.Periods
	now       func() time.Time
	most      int // maximum records in the queue of one shard

	shards [shardCount]shard
	kept   atomic.Int64 // bytes of arguments that wait to be hashed

	indexes indexes // for readers

	asleep  atomic.Bool   // the queues are empty and no timer runs
	wake    chan struct{} // signals a first record after sleep, or enough for a message
	asks    chan chan error
	stop    chan struct{}
	done    chan struct{}
	closing sync.Once

	written, lost atomic.Uint64
}

// shard holds a part of the calls, to reduce lock contention.
type shard struct {
	mu      sync.Mutex
	young   list    // running calls that are not recorded yet
	waiting []*Call // records to be stored
	spare   []*Call // reused memory of an earlier waiting
	closed  bool
	_       [64]byte // keeps shards in separate cache lines
}

// list is a doubly linked list of calls, in the order in which they began.
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

// Stats holds counts since the start of the recorder.
type Stats struct {
	// Written counts records that were stored.
	Written uint64
	// Lost counts records that were dropped because the queue was full or they could not be stored
	// at shutdown.
	Lost uint64
	// Waiting is the number of records that are not stored yet.
	Waiting int
}

// Open opens the store of call records and creates its stream if it does not exist; ctx bounds that. The
// caller still owns the connection; a connection that only the recorder uses is best.
func Open(ctx context.Context, conn *bus.Conn, o Options) (*Recorder, error) {
	store, err := openStore(ctx, conn)
	if err != nil {
		return nil, err
	}
	r := &Recorder{
		store: store, frontDoor: o.FrontDoor, alive: o.Alive, owner: o.Owner, owners: o.Owners, log: o.Log, ring: o.DataKeys, retention: o.Retention, now: time.Now, most: max(cmp.Or(o.Queue, defaultQueue)/shardCount, 1),
		wake: make(chan struct{}, 1), asks: make(chan chan error), stop: make(chan struct{}), done: make(chan struct{}),
	}
	r.asleep.Store(true)
	go newWriter(r).run()
	return r, nil
}

// Stats returns the current counts.
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

// Sync waits until everything that was recorded before is stored, including running calls, or until
// ctx ends.
func (r *Recorder) Sync(ctx context.Context) error {
	stored := make(chan error, 1)
	select {
	case r.asks <- stored:
	case <-ctx.Done():
		return lateError(ctx.Err())
	case <-r.done:
		return nil // the queue was stored, or counted as lost
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

// Close stores the queued records, for at most 10 s, and waits for the recorder's goroutine. Calls
// that still run stay recorded as running. Later records are dropped.
func (r *Recorder) Close() {
	r.closing.Do(func() { close(r.stop) })
	<-r.done
}
