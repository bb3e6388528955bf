package audit

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

// Options of a log. The zero value of each means its default.
type Options struct {
	// Name is what the operator calls this process; the writer's name begins
	// with it.
	Name string
	// MaxAge is how long records are kept; 0 keeps them for ever. It counts when
	// the stream is made.
	MaxAge time.Duration
	// Queue is how many entries may wait to be stored: 8,192.
	Queue int
	// HeadEvery is how often the head is kept while records come: 1 s.
	HeadEvery time.Duration
	// Linger is how long an entry waits for others that are stored in one write
	// with it: 20 ms. A process that is killed leaves out what waits.
	Linger time.Duration
	// Log receives what cannot be told to a caller. It must be set.
	Log *slog.Logger
}

const (
	defaultQueue     = 8192
	defaultHeadEvery = time.Second
	defaultLinger    = 20 * time.Millisecond

	// groupLines and groupBytes bound what is stored in one message: one write to
	// the disk for many records.
	groupLines = 1000
	groupBytes = 512 << 10
	// maxText bounds one text of an entry; longer ones are cut.
	maxText = 4 << 10

	storeTimeout = 5 * time.Second
	retryWait    = 250 * time.Millisecond
	closeTimeout = 10 * time.Second
)

// Log is one writer of the audit record, and a reader of all. All methods are
// safe for concurrent use.
type Log struct {
	*Reader
	writer string
	every  time.Duration
	linger time.Duration
	log    *slog.Logger

	queue chan *item // of pointers: the room for thousands is taken at the start
	stop  chan struct{}
	done  chan struct{}

	mu      sync.RWMutex // held for reading while an item is queued
	closed  bool
	closing sync.Once
	ended   atomic.Bool // nothing more is stored
}

// item is an entry to be stored, or a question whether all before it are.
type item struct {
	entry  Entry
	stored chan error
}

// Open opens the audit record and begins a chain; ctx bounds that. The
// connection stays the caller's; it is best one of the log's own.
func Open(ctx context.Context, conn *bus.Conn, o Options) (*Log, error) {
	store, err := openStore(ctx, conn, o.MaxAge, bus.OpenStream, bus.OpenBucket)
	if err != nil {
		return nil, err
	}
	// The random tail sorts by time, which says how old a chain can be.
	l := &Log{
		Reader: &Reader{store}, log: o.Log, stop: make(chan struct{}), done: make(chan struct{}), queue: make(chan *item, cmp.Or(max(o.Queue, 0), defaultQueue)),
		every: cmp.Or(max(o.HeadEvery, 0), defaultHeadEvery), linger: cmp.Or(max(o.Linger, 0), defaultLinger),
		writer: schema.NewID(plain(cmp.Or(o.Name, "callyard"))),
	}
	c := &chain{log: l, prev: start(), at: time.Now().UTC()}
	if err := c.keepHead(ctx, false); err != nil {
		return nil, err
	}
	go c.run()
	return l, nil
}

// plain makes a name fit for a subject, at most 32 characters of it.
func plain(name string) string {
	b := []byte(name[:min(len(name), 32)])
	for i, c := range b {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '_' {
			b[i] = '-'
		}
	}
	return string(b)
}

// Writer is the name of this log's chain.
func (l *Log) Writer() string { return l.writer }

// Append queues an entry. It waits only while the queue is full, at most until
// ctx ends, and then returns [schema.KindUnavailable].
func (l *Log) Append(ctx context.Context, e Entry) error {
	if e.At.IsZero() {
		e.At = time.Now()
	}
	e.At = e.At.UTC().Round(0)
	return l.enqueue(ctx, &item{entry: e})
}

func (l *Log) enqueue(ctx context.Context, i *item) error {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.closed || l.ended.Load() {
		return closedError()
	}
	select {
	case l.queue <- i:
		return nil
	default:
	}
	select {
	case l.queue <- i:
		return nil
	case <-ctx.Done():
	case <-l.stop:
	}
	return schema.Errorf(schema.KindUnavailable, "The audit log cannot accept more entries at the moment; check that NATS is running and has disk space.")
}

// Sync waits until every entry that was appended before is stored, or ctx ends.
func (l *Log) Sync(ctx context.Context) error {
	stored := make(chan error, 1)
	if err := l.enqueue(ctx, &item{stored: stored}); err != nil {
		return err
	}
	select {
	case err := <-stored:
		return err
	case <-ctx.Done():
		return schema.Errorf(schema.KindUnavailable, "The audit record was not stored in time; check that NATS is running and has disk space. (%w)", ctx.Err())
	case <-l.done:
		select {
		case err := <-stored:
			return err
		default:
			return closedError()
		}
	}
}

func closedError() error {
	return schema.Errorf(schema.KindUnavailable, "The audit log is closed: this process is stopping, or cannot store further records; its log has the reason.")
}

// Close stores what is queued, as long as that takes no more than 10 s, closes
// the chain and waits for its goroutine.
func (l *Log) Close() {
	l.closing.Do(func() {
		close(l.stop) // lets go of those who wait for room, so that the lock comes free
		l.mu.Lock()
		l.closed = true
		close(l.queue)
		l.mu.Unlock()
	})
	<-l.done
}
