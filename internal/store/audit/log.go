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

// Options configures a log. Zero fields select their defaults.
type Options struct {
	// Name is the operator's name for this process. It is the prefix of the writer's name.
	Name string
	// Queue limits the entries that wait to be stored (default 8,192).
	Queue int
	// HeadEvery is the interval of head updates while records are written (default 1 s).
	HeadEvery time.Duration
	// Linger is the time that an entry waits for others, to share one write (default 20 ms).
	// If the process is killed, waiting entries are lost.
	Linger time.Duration
	// Log receives errors that cannot be returned to a caller. Required.
	Log *slog.Logger
}

const (
	defaultQueue     = 8192
	defaultHeadEvery = time.Second
	defaultLinger    = 20 * time.Millisecond

	// groupLines and groupBytes limit one message, which is one disk write for many records.
	groupLines = 1000
	groupBytes = 512 << 10
	// maxText limits one text of an entry; longer ones are truncated.
	maxText = 4 << 10

	storeTimeout = 5 * time.Second
	retryWait    = 250 * time.Millisecond
	closeTimeout = 10 * time.Second
)

// Log is one writer of the audit record, and a reader of all. It is safe for concurrent use.
type Log struct {
	*Reader
	writer string
	every  time.Duration
	linger time.Duration
	log    *slog.Logger

	queue chan *item // of pointers, because the buffer is allocated at the start
	stop  chan struct{}
	done  chan struct{}

	mu      sync.RWMutex // held for reading while an item is queued
	closed  bool
	closing sync.Once
	ended   atomic.Bool // no more entries are stored
}

// item is an entry to store, or a Sync request.
type item struct {
	entry  Entry
	stored chan error
}

// Open opens the audit record and starts a chain; ctx bounds that. The caller still owns the
// connection; a connection that only the log uses is best.
func Open(ctx context.Context, conn *bus.Conn, o Options) (*Log, error) {
	store, err := openStore(ctx, conn, bus.OpenStream, bus.OpenBucket)
	if err != nil {
		return nil, err
	}
	// The random tail sorts by time, from which the maximum age of a chain follows.
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

// plain returns a name that is valid in a subject, truncated to 32 characters.
func plain(name string) string {
	b := []byte(name[:min(len(name), 32)])
	for i, c := range b {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '_' {
			b[i] = '-'
		}
	}
	return string(b)
}

// Writer returns the name of this log's chain.
func (l *Log) Writer() string { return l.writer }

// Append queues an entry. It blocks only while the queue is full. If ctx ends first, it returns
// [schema.KindUnavailable].
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

// Close stores queued entries, for at most 10 s, closes the chain and waits for its goroutine.
func (l *Log) Close() {
	l.closing.Do(func() {
		close(l.stop) // unblocks callers that wait for the queue, which releases the lock
		l.mu.Lock()
		l.closed = true
		close(l.queue)
		l.mu.Unlock()
	})
	<-l.done
}
