package bus

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

// Table is a [Bucket] of JSON rows that are cached in memory. Each write reaches every process
// that has the table open. It handles keys, rows and revisions, and does not interpret rows. All
// methods are safe for concurrent use.
type Table[T any] struct {
	b     *Bucket
	key   func(*T) string
	ttl   time.Duration // for which NATS keeps a row; 0 means forever
	watch *StreamWatch

	mu    sync.RWMutex
	rows  map[string]row[T]
	prune int // number of rows at which those that expired are dropped
}

// row is a value with its revision, so that a delayed notification of an older write does not
// overwrite a newer one.
type row[T any] struct {
	value    T
	revision uint64
	at       second // of the write
	removed  bool
}

// second is a time in seconds since 1970, which takes no extra space in a row.
type second uint32

func secondOf(t time.Time) second { return second(t.Unix()) } // until 2106

const (
	// minPrune is the minimum number of rows at which those that expired are dropped.
	minPrune = 1024
	// expiredFor is the time for which an expired row remains in memory, because clocks differ.
	expiredFor = time.Hour
)

// OpenTable opens a table and reads its rows; ctx limits that. key returns the key of a row.
// changed, if not nil, is called after every later change, on one goroutine.
func OpenTable[T any](ctx context.Context, c *Conn, spec TableSpec, key func(*T) string, changed func()) (*Table[T], error) {
	b, err := OpenBucket(ctx, c, spec)
	if err != nil {
		return nil, err
	}
	t := &Table[T]{b: b, key: key, rows: make(map[string]row[T])}
	if spec.Keep > 0 {
		if t.ttl, err = b.ttl(ctx); err != nil {
			return nil, err
		}
	}
	t.watch, err = b.watch(ctx, func(key string, m *nats.Msg, revision uint64, live bool) {
		t.take(key, m, revision)
		if live && changed != nil {
			changed()
		}
	}, false, t.rewound)
	if err != nil {
		return nil, err
	}
	return t, nil
}

// take applies one write from the watch.
func (t *Table[T]) take(key string, m *nats.Msg, revision uint64) {
	next := row[T]{revision: revision, at: secondOf(time.Now()), removed: removal(m)}
	if meta, err := m.Metadata(); err == nil {
		next.at = secondOf(meta.Timestamp)
	}
	if !next.removed {
		if err := json.Unmarshal(m.Data, &next.value); err != nil {
			t.b.c.log.Error("a row cannot be decoded; it is skipped", "bucket", t.b.spec.Bucket, "key", key, "error", err)
			next.removed = true
		}
	}
	t.keep(key, next)
}

// rewound makes every write of the table newer than the rows in memory, because its revisions have
// started again.
func (t *Table[T]) rewound() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for key, r := range t.rows {
		r.revision = 0
		t.rows[key] = r
	}
}

// keep stores a row unless a newer revision is known.
func (t *Table[T]) keep(key string, next row[T]) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if next.revision >= t.rows[key].revision {
		t.rows[key] = next
	}
	if t.ttl > 0 && len(t.rows) >= max(t.prune, minPrune) {
		// NATS removes expired rows without a notification.
		oldest := secondOf(time.Now().Add(-t.ttl - expiredFor))
		maps.DeleteFunc(t.rows, func(_ string, r row[T]) bool { return r.at < oldest })
		t.prune = 2 * len(t.rows)
	}
}

// Get returns a row from the cache of this process.
func (t *Table[T]) Get(key string) (T, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	r, ok := t.rows[key]
	return r.value, ok && !r.removed
}

// Some reports whether there are rows, or were.
func (t *Table[T]) Some() bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return len(t.rows) > 0
}

// All returns every row from the cache of this process, unordered. It may include rows that have
// expired.
func (t *Table[T]) All() []T {
	t.mu.RLock()
	defer t.mu.RUnlock()
	all := make([]T, 0, len(t.rows))
	for _, r := range t.rows {
		if !r.removed {
			all = append(all, r.value)
		}
	}
	return all
}

// Put writes a row and waits until it is stored. This process sees it at once.
func (t *Table[T]) Put(ctx context.Context, v T) error {
	_, err := t.write(v, func(key string, body []byte) (uint64, error) { return t.b.Put(ctx, key, body) })
	return err
}

// Create writes a new row. It returns [ErrConflict] if the row exists.
func (t *Table[T]) Create(ctx context.Context, v T) (uint64, error) {
	return t.write(v, func(key string, body []byte) (uint64, error) { return t.b.Create(ctx, key, body) })
}

// Replace writes a row if it still has the given revision. It returns [ErrConflict] if another
// writer changed it first.
func (t *Table[T]) Replace(ctx context.Context, v T, revision uint64) (uint64, error) {
	return t.write(v, func(key string, body []byte) (uint64, error) { return t.b.Replace(ctx, key, body, revision) })
}

func (t *Table[T]) write(v T, store func(key string, body []byte) (uint64, error)) (uint64, error) {
	body, err := json.Marshal(v)
	if err != nil {
		return 0, fmt.Errorf("encoding a row of %s: %w", t.b.spec.What, err)
	}
	key := t.key(&v)
	revision, err := store(key, body)
	if err == nil {
		t.keep(key, row[T]{value: v, revision: revision, at: secondOf(time.Now())})
	}
	return revision, err
}

// Fresh reads a row and its revision from the leader of the table, which has every acknowledged
// write. It returns [ErrNotFound] if the row does not exist.
func (t *Table[T]) Fresh(ctx context.Context, key string) (v T, revision uint64, err error) {
	body, revision, err := t.b.Fresh(ctx, key)
	if err != nil {
		return v, 0, err
	}
	if err := json.Unmarshal(body, &v); err != nil {
		return v, 0, fmt.Errorf("decoding a row of %s: %w", t.b.spec.What, err)
	}
	t.keep(key, row[T]{value: v, revision: revision, at: secondOf(time.Now())})
	return v, revision, nil
}

// Delete removes a row and waits until the removal is stored. This process sees it at once.
func (t *Table[T]) Delete(ctx context.Context, key string) error {
	t.mu.RLock()
	known := t.rows[key].revision
	t.mu.RUnlock()
	if err := t.b.Delete(ctx, key); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.rows[key].revision == known { // otherwise the watch is further, possibly at a row that was written after the removal
		t.rows[key] = row[T]{revision: known, at: secondOf(time.Now()), removed: true}
	}
	return nil
}

// Remove removes a row if it still has the given revision. It returns [ErrConflict] if another
// writer changed it first. This process sees the removal at once.
func (t *Table[T]) Remove(ctx context.Context, key string, revision uint64) error {
	if err := t.b.Remove(ctx, key, revision); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.rows[key].revision == revision {
		t.rows[key] = row[T]{revision: revision, at: secondOf(time.Now()), removed: true}
	}
	return nil
}

// Revision returns a row and its revision from the cache of this process.
func (t *Table[T]) Revision(key string) (v T, revision uint64, ok bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	r, ok := t.rows[key]
	return r.value, r.revision, ok && !r.removed
}

// Close ends the watch on the table and waits for it.
func (t *Table[T]) Close() { t.watch.Close() }
