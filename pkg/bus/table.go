package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// TableSpec says what a table is. Bucket is one of the names of this package, What says
// what its rows are, and Keep how long a row is kept after it was last written (0: for
// ever).
type TableSpec struct {
	Bucket string
	What   string
	Keep   time.Duration
}

func (s TableSpec) config() jetstream.KeyValueConfig {
	return jetstream.KeyValueConfig{Bucket: s.Bucket, Description: s.What, History: 1, TTL: s.Keep}
}

// Table is a durable table whose rows are changed by compare-and-set: of all who
// write a row at once one wins. It knows keys, rows and revisions; what a row
// means is decided above. All methods are safe for concurrent use.
type Table[T any] struct {
	c      *Conn
	bucket string
	what   string
	key    func(*T) string
	rows   *Records[T]
}

// OpenTable opens a table. key names a row; it must be made of plain tokens with dots
// between.
func OpenTable[T any](ctx context.Context, c *Conn, spec TableSpec, key func(*T) string) (*Table[T], error) {
	want := spec.config()
	rows, err := openRecords(ctx, c, want, key, nil)
	if err != nil {
		return nil, err
	}
	return &Table[T]{c: c, bucket: want.Bucket, what: want.Description, key: key, rows: rows}, nil
}

// TableKey makes one part of a key of any name.
func TableKey(name string) string { return token(name) }

// All returns every row as this process knows it, in no order. Rows that ended by
// age may still be among them.
func (t *Table[T]) All() []T { return t.rows.All() }

// Known returns a row as this process knows it, without asking anybody.
func (t *Table[T]) Known(key string) (T, bool) { return t.rows.Get(key) }

// Create writes a row where there is none; [ErrConflict] means that there is one.
func (t *Table[T]) Create(ctx context.Context, v T) (uint64, error) {
	return t.write(v, func(key string, body []byte) (uint64, error) { return t.rows.kv.Create(ctx, key, body) })
}

// Replace writes a row when its revision is still the given one; [ErrConflict]
// means that another writer was first.
func (t *Table[T]) Replace(ctx context.Context, v T, revision uint64) (uint64, error) {
	return t.write(v, func(key string, body []byte) (uint64, error) { return t.rows.kv.Update(ctx, key, body, revision) })
}

func (t *Table[T]) write(v T, store func(key string, body []byte) (uint64, error)) (uint64, error) {
	body, err := json.Marshal(v)
	if err != nil {
		return 0, fmt.Errorf("encoding a row of %s: %w", t.what, err)
	}
	key := t.key(&v)
	revision, err := store(key, body)
	if err := conflictOf(err); err != nil {
		if errors.Is(err, ErrConflict) {
			return 0, err
		}
		return 0, fmt.Errorf("storing a row of %s: %w", t.what, err)
	}
	t.rows.keep(key, row[T]{value: v, revision: revision})
	return revision, nil
}

// conflictOf turns what JetStream says when another writer was first into [ErrConflict].
func conflictOf(err error) error {
	var api *jetstream.APIError
	if errors.Is(err, jetstream.ErrKeyExists) || errors.As(err, &api) && (api.ErrorCode == codeWrongLast || api.ErrorCode == codeWrongLastPlain) {
		return ErrConflict
	}
	return err
}

// Fresh reads a row and its revision from the table's leader, which has every
// write that was acknowledged; [ErrNotFound] means that there is none.
func (t *Table[T]) Fresh(ctx context.Context, key string) (v T, revision uint64, err error) {
	m, err := t.c.leader(ctx, "KV_"+t.bucket, "$KV."+t.bucket+"."+key)
	if err != nil {
		return v, 0, err
	}
	if len(m.data) == 0 { // the mark of a row that was removed
		return v, 0, ErrNotFound
	}
	if err := json.Unmarshal(m.data, &v); err != nil {
		return v, 0, fmt.Errorf("decoding a row of %s: %w", t.what, err)
	}
	t.rows.keep(key, row[T]{value: v, revision: m.sequence})
	return v, m.sequence, nil
}

// Delete removes a row.
func (t *Table[T]) Delete(ctx context.Context, key string) error { return t.rows.Delete(ctx, key) }

// Close ends the watch on the table and waits for it.
func (t *Table[T]) Close() { t.rows.Close() }

// Once remembers names, for all processes, as long as its table keeps rows.
type Once struct {
	what string
	kv   jetstream.KeyValue
}

// OpenOnce opens the names that are kept in a table.
func OpenOnce(ctx context.Context, c *Conn, spec TableSpec) (*Once, error) {
	kv, err := openBucket(ctx, c, spec.config())
	if err != nil {
		return nil, err
	}
	return &Once{spec.What, kv}, nil
}

// Take returns nil to the first who takes a name, and [ErrConflict] to all others.
// After any other error the name may be taken or not.
func (o *Once) Take(ctx context.Context, name string) error {
	_, err := o.kv.Create(ctx, token(name), []byte{'1'})
	if err = conflictOf(err); err != nil && !errors.Is(err, ErrConflict) {
		return fmt.Errorf("noting one of the %s: %w", o.what, err)
	}
	return err
}
