package bus

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Switch says whether a tool may be called, and why not.
type Switch struct {
	Server  string    `json:"server"`
	Tool    string    `json:"tool"`
	Enabled bool      `json:"enabled"`
	Reason  string    `json:"reason,omitempty"`
	By      string    `json:"by,omitempty"`
	At      time.Time `json:"at"`
}

// AddedServer is a server that was added over the API. Definition is its entry
// in the shape of the servers file.
type AddedServer struct {
	ID         string          `json:"id"`
	Definition json.RawMessage `json:"definition"`
	By         string          `json:"by,omitempty"`
	At         time.Time       `json:"at"`
}

// Records is a small durable table on JetStream, seen by every front door: each
// write reaches every watcher. Use [OpenSwitches] or [OpenServers].
type Records[T any] struct {
	kv     jetstream.KeyValue
	key    func(*T) string
	watch  *StreamWatch
	prefix string // of the subjects of the bucket

	mu   sync.RWMutex
	rows map[string]row[T]
}

// row is a value with the revision that wrote it, so that word of an older write
// cannot undo a newer one.
type row[T any] struct {
	value    T
	revision uint64
	gone     bool
}

var (
	switchesTable = heldRows(bucketSwitches, "tools switched off")
	serversTable  = heldRows(bucketServers, "servers added over the API")
)

// OpenSwitches opens the table of tools that were switched off. changed is
// called after every change, on one goroutine.
func OpenSwitches(ctx context.Context, c *Conn, changed func()) (*Records[Switch], error) {
	return openRecords(ctx, c, switchesTable, func(s *Switch) string { return SwitchKey(s.Server, s.Tool) }, changed)
}

// SwitchKey is the key of a tool in the table of switches.
func SwitchKey(server, tool string) string { return kvKey(server) + "." + kvKey(tool) }

// OpenServers opens the table of servers that were added over the API.
func OpenServers(ctx context.Context, c *Conn, changed func()) (*Records[AddedServer], error) {
	return openRecords(ctx, c, serversTable, func(s *AddedServer) string { return ServerKey(s.ID) }, changed)
}

// ServerKey is the key of a server in the table of added servers.
func ServerKey(id string) string { return kvKey(id) }

func kvKey(name string) string { return token(name) }

// heldRows is the configuration of a bucket whose rows stay until they are removed.
func heldRows(bucket, what string) jetstream.KeyValueConfig {
	return jetstream.KeyValueConfig{Bucket: bucket, Description: what, History: 5}
}

func openRecords[T any](ctx context.Context, c *Conn, want jetstream.KeyValueConfig, key func(*T) string, changed func()) (*Records[T], error) {
	kv, err := openBucket(ctx, c, want)
	if err != nil {
		return nil, err
	}
	bucket, what := want.Bucket, want.Description
	r := &Records[T]{kv: kv, key: key, rows: make(map[string]row[T]), prefix: kvSubject + bucket + "."}
	r.watch, err = c.watch(ctx, what, kvStream+bucket, r.prefix+">", func(m *nats.Msg, revision uint64, live bool) {
		r.take(c, bucket, m, revision)
		if live && changed != nil {
			changed()
		}
	}, beginLast, false)
	if err != nil {
		return nil, err
	}
	return r, nil
}

// kvSubject begins the subjects of buckets, kvStream the names of their streams,
// and kvOperation is the header of a write that removes: names of NATS.
const (
	kvSubject   = "$KV."
	kvStream    = "KV_"
	kvOperation = "KV-Operation"
)

// take takes in one write.
func (r *Records[T]) take(c *Conn, bucket string, m *nats.Msg, revision uint64) {
	key := strings.TrimPrefix(m.Subject, r.prefix)
	next := row[T]{revision: revision, gone: m.Header.Get(kvOperation) != ""}
	if !next.gone {
		if err := json.Unmarshal(m.Data, &next.value); err != nil {
			c.log.Error("a record cannot be read; it is left out", "bucket", bucket, "key", key, "error", err)
			next.gone = true
		}
	}
	r.keep(key, next)
}

// keep takes in a write unless a newer one is known.
func (r *Records[T]) keep(key string, next row[T]) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if next.revision >= r.rows[key].revision {
		r.rows[key] = next
	}
}

// Get returns the row of the key.
func (r *Records[T]) Get(key string) (T, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	v, ok := r.rows[key]
	return v.value, ok && !v.gone
}

// Some says that there are rows, or were.
func (r *Records[T]) Some() bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return len(r.rows) > 0
}

// All returns every row, in no order.
func (r *Records[T]) All() []T {
	r.mu.RLock()
	defer r.mu.RUnlock()
	rows := make([]T, 0, len(r.rows))
	for _, v := range r.rows {
		if !v.gone {
			rows = append(rows, v.value)
		}
	}
	return rows
}

// Put writes a row and waits until it is stored; this process sees it at once.
func (r *Records[T]) Put(ctx context.Context, v T) error {
	body, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encoding the record: %w", err)
	}
	key := r.key(&v)
	revision, err := r.kv.Put(ctx, key, body)
	if err != nil {
		return fmt.Errorf("storing the record: %w", err)
	}
	r.keep(key, row[T]{value: v, revision: revision})
	return nil
}

// Delete removes the row of the key and waits until that is stored; this process
// sees it at once.
func (r *Records[T]) Delete(ctx context.Context, key string) error {
	if err := r.kv.Delete(ctx, key); err != nil {
		return fmt.Errorf("removing the record: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rows[key] = row[T]{revision: r.rows[key].revision, gone: true}
	return nil
}

// Close ends the watch and waits for it.
func (r *Records[T]) Close() { r.watch.Close() }
