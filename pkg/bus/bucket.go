package bus

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// TableSpec says what a bucket of JetStream keeps. It counts when the bucket is made: one
// that is there stays as an operator may have set it.
type TableSpec struct {
	// Bucket is one of the names of this package, What says for people what its rows are.
	Bucket, What string
	// Keep is how long a row is kept after it was last written; 0: for ever.
	Keep time.Duration
	// History is how many writes of a row are kept; 0 means 1.
	History int
	// MaxBytes bounds the bucket; 0: there is no bound.
	MaxBytes int64
}

func (s TableSpec) config() jetstream.KeyValueConfig {
	return jetstream.KeyValueConfig{Bucket: s.Bucket, Description: s.What, History: uint8(max(s.History, 1)), TTL: s.Keep, MaxBytes: s.MaxBytes}
}

// Names of NATS: what begins the subjects of buckets and the names of their streams, and
// the header of a write that removes.
const (
	kvSubject   = "$KV."
	kvStream    = "KV_"
	kvOperation = "KV-Operation"
)

// Bucket is a table of bytes by key, which is plain tokens with dots between ([Token]). Of
// all who create or replace a row at once one wins. All methods are safe for concurrent
// use. [Table] is one of typed rows that are kept in memory.
type Bucket struct {
	c    *Conn
	kv   jetstream.KeyValue
	spec TableSpec
}

// OpenBucket opens a bucket, and makes it when it is missing and the connection may; see
// [Provision].
func OpenBucket(ctx context.Context, c *Conn, spec TableSpec) (*Bucket, error) {
	kv, err := openBucket(ctx, c, spec.config())
	if err != nil {
		return nil, err
	}
	return &Bucket{c, kv, spec}, nil
}

// FindBucket opens a bucket that is there, to read it; [ErrNotFound] means that there is
// none.
func FindBucket(ctx context.Context, c *Conn, spec TableSpec) (*Bucket, error) {
	kv, err := c.js.KeyValue(ctx, spec.Bucket)
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		return nil, ErrNotFound
	}
	if err != nil {
		return nil, opening(err, "table", spec.What)
	}
	return &Bucket{c, kv, spec}, nil
}

// Put writes a row and returns its revision.
func (b *Bucket) Put(ctx context.Context, key string, row []byte) (uint64, error) {
	return b.wrote(b.kv.Put(ctx, key, row))
}

// Create writes a row where there is none; [ErrConflict] means that there is one.
func (b *Bucket) Create(ctx context.Context, key string, row []byte) (uint64, error) {
	return b.wrote(b.kv.Create(ctx, key, row))
}

// Replace writes a row when its revision is still the given one; [ErrConflict] means that
// another writer was first.
func (b *Bucket) Replace(ctx context.Context, key string, row []byte, revision uint64) (uint64, error) {
	return b.wrote(b.kv.Update(ctx, key, row, revision))
}

func (b *Bucket) wrote(revision uint64, err error) (uint64, error) {
	if err == nil {
		return revision, nil
	}
	if err = refusal(err); errors.Is(err, ErrConflict) {
		return 0, err
	}
	return 0, fmt.Errorf("writing to the table of %s: %w", b.spec.What, err)
}

// Delete removes a row, if there is one.
func (b *Bucket) Delete(ctx context.Context, key string) error {
	if err := b.kv.Delete(ctx, key); err != nil {
		return fmt.Errorf("removing a row from the table of %s: %w", b.spec.What, err)
	}
	return nil
}

// Remove removes a row when its revision is still the given one; [ErrConflict] means that
// another writer was first.
func (b *Bucket) Remove(ctx context.Context, key string, revision uint64) error {
	_, err := b.wrote(0, b.kv.Delete(ctx, key, jetstream.LastRevision(revision)))
	return err
}

// Fresh reads a row and its revision from the bucket's leader, which has every write that
// was acknowledged; [ErrNotFound] means that there is none.
func (b *Bucket) Fresh(ctx context.Context, key string) (row []byte, revision uint64, err error) {
	m, err := b.c.leader(ctx, kvStream+b.spec.Bucket, map[string]any{"last_by_subj": kvSubject + b.spec.Bucket + "." + key})
	switch {
	case errors.Is(err, ErrNotFound):
		return nil, 0, err
	case err != nil:
		return nil, 0, fmt.Errorf("reading from the table of %s: %w", b.spec.What, err)
	case len(m.Data) == 0: // the mark of a row that was removed
		return nil, 0, ErrNotFound
	}
	return m.Data, m.Sequence, nil
}

// Under returns the keys that begin with the tokens of prefix and a dot, in no order, from the
// bucket's leader. Those of rows that were removed may be among them.
func (b *Bucket) Under(ctx context.Context, prefix string) ([]string, error) {
	s, err := FindStream(ctx, b.c, StreamSpec{Name: kvStream + b.spec.Bucket, What: b.spec.What})
	if err != nil {
		return nil, err
	}
	rows := kvSubject + b.spec.Bucket + "."
	keys, err := s.Subjects(ctx, rows+prefix+".>")
	for i := range keys {
		keys[i] = strings.TrimPrefix(keys[i], rows)
	}
	return keys, err
}

// RemoveUnder removes the rows of a bucket whose keys begin with the tokens of prefix and a dot,
// with all that its history has of them, and returns their number. It may be repeated. Without the bucket there are none.
func RemoveUnder(ctx context.Context, c *Conn, spec TableSpec, prefix string) (removed int, err error) {
	b, err := FindBucket(ctx, c, spec)
	if errors.Is(err, ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	keys, err := b.Under(ctx, prefix)
	if err != nil {
		return 0, err
	}
	for _, key := range keys {
		if _, _, err := b.Fresh(ctx, key); errors.Is(err, ErrNotFound) {
			continue
		} else if err != nil {
			return removed, err
		}
		if err := b.kv.Purge(ctx, key); err != nil { // with the states before
			return removed, fmt.Errorf("removing a row from the table of %s: %w", spec.What, err)
		}
		removed++
	}
	return removed, nil
}

// All reads every row, by its key.
func (b *Bucket) All(ctx context.Context) (map[string][]byte, error) {
	all := map[string][]byte{}
	w, err := b.watch(ctx, func(key string, m *nats.Msg, _ uint64, _ bool) {
		if removal(m) {
			delete(all, key)
		} else {
			all[key] = m.Data
		}
	}, false)
	if err != nil {
		return nil, fmt.Errorf("listing the table of %s: %w", b.spec.What, err)
	}
	w.Close() // nobody writes to the map from here on
	return all, nil
}

// Watch calls f for each write and removal from now on, with the revision of that, on one
// goroutine. Of several writes of one row in quick succession it may be told the last
// alone.
func (b *Bucket) Watch(ctx context.Context, f func(key string, revision uint64, removed bool)) (*StreamWatch, error) {
	return b.watch(ctx, func(key string, m *nats.Msg, revision uint64, live bool) {
		if live {
			f(key, revision, removal(m))
		}
	}, true)
}

// watch calls f for the last write of each row, and then for each write.
func (b *Bucket) watch(ctx context.Context, f func(key string, m *nats.Msg, revision uint64, live bool), headersOnly bool) (*StreamWatch, error) {
	rows := kvSubject + b.spec.Bucket + "."
	return b.c.watch(ctx, b.spec.What, kvStream+b.spec.Bucket, rows+">", func(m *nats.Msg, revision uint64, live bool) {
		f(strings.TrimPrefix(m.Subject, rows), m, revision, live)
	}, beginLast, headersOnly)
}

func removal(m *nats.Msg) bool { return m.Header.Get(kvOperation) != "" }

// Once remembers names, for all processes, as long as its table keeps rows.
type Once struct{ b *Bucket }

// OpenOnce opens the names that are kept in a table.
func OpenOnce(ctx context.Context, c *Conn, spec TableSpec) (*Once, error) {
	b, err := OpenBucket(ctx, c, spec)
	if err != nil {
		return nil, err
	}
	return &Once{b}, nil
}

// Take returns nil to the first who takes a name, and [ErrConflict] to all others. After
// any other error the name may be taken or not.
func (o *Once) Take(ctx context.Context, name string) error {
	_, err := o.b.Create(ctx, Token(name), []byte{'1'})
	return err
}
