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

// TableSpec specifies a JetStream bucket. It is used only to create the bucket. An existing
// bucket is left unchanged, because an operator may have configured it.
type TableSpec struct {
	// Bucket is one of the names in this package. What describes the rows for people.
	Bucket, What string
	// Keep is the time for which a row is kept after its last write. 0 means forever.
	Keep time.Duration
	// History is the number of revisions kept per row. 0 means 1.
	History int
	// MaxBytes limits the size of the bucket. 0 means no limit.
	MaxBytes int64
}

func (s TableSpec) config() jetstream.KeyValueConfig {
	return jetstream.KeyValueConfig{Bucket: s.Bucket, Description: s.What, History: uint8(max(s.History, 1)), TTL: s.Keep, MaxBytes: s.MaxBytes}
}

// Names that NATS defines: the prefixes of a bucket's subjects and stream, and the header of a
// write that removes a row.
const (
	kvSubject   = "$KV."
	kvStream    = "KV_"
	kvOperation = "KV-Operation"
)

// Bucket is a table of bytes by key. A key consists of plain tokens separated by dots
// ([Token]). If several writers create or replace a row concurrently, one succeeds. All
// methods are safe for concurrent use. [Table] has typed rows that are cached in memory.
type Bucket struct {
	c    *Conn
	kv   jetstream.KeyValue
	spec TableSpec
}

// OpenBucket opens a bucket. If it does not exist and the connection is allowed to create
// it, OpenBucket creates it; see [Provision].
func OpenBucket(ctx context.Context, c *Conn, spec TableSpec) (*Bucket, error) {
	kv, err := openBucket(ctx, c, spec.config())
	if err != nil {
		return nil, err
	}
	return &Bucket{c, kv, spec}, nil
}

// FindBucket opens an existing bucket for reading. It returns [ErrNotFound] if there is none.
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

// ttl returns the time for which NATS keeps a row after its last write, which an operator may have
// changed; 0 means forever.
func (b *Bucket) ttl(ctx context.Context) (time.Duration, error) {
	status, err := b.kv.Status(ctx)
	if err != nil {
		return 0, opening(err, "table", b.spec.What)
	}
	return status.TTL(), nil
}

// Put writes a row and returns its revision.
func (b *Bucket) Put(ctx context.Context, key string, row []byte) (uint64, error) {
	return b.wrote(b.kv.Put(ctx, key, row))
}

// Create writes a new row. It returns [ErrConflict] if the row exists.
func (b *Bucket) Create(ctx context.Context, key string, row []byte) (uint64, error) {
	return b.wrote(b.kv.Create(ctx, key, row))
}

// Replace writes a row if it still has the given revision. It returns [ErrConflict] if another
// writer changed it first.
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

// Remove removes a row if it still has the given revision. It returns [ErrConflict] if another
// writer changed it first.
func (b *Bucket) Remove(ctx context.Context, key string, revision uint64) error {
	_, err := b.wrote(0, b.kv.Delete(ctx, key, jetstream.LastRevision(revision)))
	return err
}

// Fresh reads a row and its revision from the leader of the bucket, which has every
// acknowledged write. It returns [ErrNotFound] if the row does not exist.
func (b *Bucket) Fresh(ctx context.Context, key string) (row []byte, revision uint64, err error) {
	m, err := b.c.leader(ctx, kvStream+b.spec.Bucket, map[string]any{"last_by_subj": kvSubject + b.spec.Bucket + "." + key})
	switch {
	case errors.Is(err, ErrNotFound):
		return nil, 0, err
	case err != nil:
		return nil, 0, fmt.Errorf("reading from the table of %s: %w", b.spec.What, err)
	case len(m.Data) == 0: // the delete marker of a removed row
		return nil, 0, ErrNotFound
	}
	return m.Data, m.Sequence, nil
}

// Under returns the keys that begin with the tokens of prefix and a dot, unordered, from the
// leader of the bucket. It may include keys of removed rows.
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
// including their history, and returns the number of removed rows. It may be repeated. If the
// bucket does not exist, it returns 0.
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
		if err := b.kv.Purge(ctx, key); err != nil { // removes the history too
			return removed, fmt.Errorf("removing a row from the table of %s: %w", spec.What, err)
		}
		removed++
	}
	return removed, nil
}

// All reads all rows and returns them by key.
func (b *Bucket) All(ctx context.Context) (map[string][]byte, error) {
	all := map[string][]byte{}
	w, err := b.watch(ctx, func(key string, m *nats.Msg, _ uint64, _ bool) {
		if removal(m) {
			delete(all, key)
		} else {
			all[key] = m.Data
		}
	}, false, nil)
	if err != nil {
		return nil, fmt.Errorf("listing the table of %s: %w", b.spec.What, err)
	}
	w.Close() // after Close, no goroutine writes to the map
	return all, nil
}

// Rows reads all rows of a table and returns them by key. If the table does not exist, there are none.
func Rows(ctx context.Context, c *Conn, spec TableSpec) (map[string][]byte, error) {
	b, err := FindBucket(ctx, c, spec)
	if errors.Is(err, ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return b.All(ctx)
}

// Watch calls f for each write and removal from now on, with its revision, on one goroutine. For
// several writes of a row in quick succession it may call f only for the last one.
func (b *Bucket) Watch(ctx context.Context, f func(key string, revision uint64, removed bool)) (*StreamWatch, error) {
	return b.watch(ctx, func(key string, m *nats.Msg, revision uint64, live bool) {
		if live {
			f(key, revision, removal(m))
		}
	}, true, nil)
}

// watch calls f for the last write of each row and then for each new write.
func (b *Bucket) watch(ctx context.Context, f func(key string, m *nats.Msg, revision uint64, live bool), headersOnly bool, rewound func()) (*StreamWatch, error) {
	rows := kvSubject + b.spec.Bucket + "."
	return b.c.watch(ctx, b.spec.What, kvStream+b.spec.Bucket, rows+">", func(m *nats.Msg, revision uint64, live bool) {
		f(strings.TrimPrefix(m.Subject, rows), m, revision, live)
	}, beginLast, headersOnly, rewound)
}

func removal(m *nats.Msg) bool { return m.Header.Get(kvOperation) != "" }

// Claims records used names across all processes, for as long as its table keeps rows.
type Claims struct{ b *Bucket }

// OpenOnce opens the table that records the names.
func OpenOnce(ctx context.Context, c *Conn, spec TableSpec) (*Claims, error) {
	b, err := OpenBucket(ctx, c, spec)
	if err != nil {
		return nil, err
	}
	return &Claims{b}, nil
}

// Take returns nil to the first caller that takes a name, and [ErrConflict] to all others.
// After any other error it is unknown whether the name is taken.
func (o *Claims) Take(ctx context.Context, name string) error {
	_, err := o.b.Create(ctx, Token(name), []byte{'1'})
	return err
}
