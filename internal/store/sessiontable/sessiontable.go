// Package sessiontable stores the sessions of MCP clients, which all front doors share. A session expires
// 24 hours after its last write. The table contains no session ids, only digests of them.
package sessiontable

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

const (
	kept = 24 * time.Hour // since the last write of a session
	most = 64 << 20       // total bytes
	// share is the number of bytes that one principal may add at this front door at once, and again
	// within the time for which rows are kept. Rows that are unused, and the markers of ended
	// sessions, stay as long, so one principal could otherwise fill the table for a day.
	share = most / 16
	// rowOverhead is the approximate size of a row besides its value.
	rowOverhead = 120
)

// ErrShare means that the principal has added its share of sessions within the last day; the rest
// of the table is left to others.
var ErrShare = errors.New("the principal opened too many sessions within a day; the table is left to others")

var spec = bus.TableSpec{Bucket: bus.BucketSessions, What: "sessions of MCP clients", Keep: kept, MaxBytes: most}

// Specs returns the specs of all tables, for [bus.Provision].
func Specs() []bus.TableSpec { return []bus.TableSpec{spec} }

// Session is the state of a session that other front doors need.
type Session struct {
	Principal    string          `json:"principal"`
	Tenant       schema.TenantID `json:"tenant,omitempty"` // tenant of the principal, in stored form
	Mount        string          `json:"mount,omitempty"`  // server of the endpoint, or "" for all servers
	Version      string          `json:"version"`          // protocol version
	Capabilities json.RawMessage `json:"capabilities,omitempty"`
	Name         string          `json:"name"`            // name of the session for workers
	Level        string          `json:"level,omitempty"` // log level
}

// Table is the open table. It is safe for concurrent use. Close it after use.
type Table struct {
	rows  *bus.Bucket
	watch *bus.StreamWatch
	added shares
}

// Open opens the table. changed is called, on one goroutine, with the key (see [Key]) and the new revision of
// each session that is written or ended from now on. Of several writes of one session in a row, it may
// receive only the last.
func Open(ctx context.Context, c *bus.Conn, changed func(key string, revision uint64, ended bool)) (*Table, error) {
	rows, err := bus.OpenBucket(ctx, c, spec)
	if err != nil {
		return nil, err
	}
	watch, err := rows.Watch(ctx, changed)
	if err != nil {
		return nil, err
	}
	return &Table{rows: rows, watch: watch}, nil
}

// Key returns the row key of a session: a digest of its id, so that the table reveals no ids.
func Key(id string) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:])
}

// Add stores a new session of the tenant, for all front doors, and returns the revision of the
// write. The error is [ErrShare] if its principal has added too many.
func (t *Table) Add(ctx context.Context, tenant schema.TenantID, key string, s Session) (revision uint64, err error) {
	row, err := encode(tenant, s)
	if err != nil {
		return 0, err
	}
	if !t.added.take(owner{tenant.Stored(), s.Principal}, len(row)+rowOverhead, time.Now()) {
		return 0, ErrShare
	}
	return t.rows.Put(ctx, key, row)
}

// Put replaces a session of the tenant, for all front doors, and returns the revision of the write.
func (t *Table) Put(ctx context.Context, tenant schema.TenantID, key string, s Session) (revision uint64, err error) {
	row, err := encode(tenant, s)
	if err != nil {
		return 0, err
	}
	return t.rows.Put(ctx, key, row)
}

func encode(tenant schema.TenantID, s Session) ([]byte, error) {
	s.Tenant = tenant.Stored()
	row, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("encoding the session: %w", err)
	}
	return row, nil
}

// Get returns a session of the tenant and its revision. The error is [bus.ErrNotFound] if it was never
// stored, belongs to another tenant, has ended or has expired. Sessions of versions without tenants belong
// to the default one.
func (t *Table) Get(ctx context.Context, tenant schema.TenantID, key string) (s Session, revision uint64, err error) {
	row, revision, err := t.rows.Fresh(ctx, key)
	if err != nil {
		return s, 0, err
	}
	if err := json.Unmarshal(row, &s); err != nil {
		return s, 0, fmt.Errorf("decoding a session: %w", err)
	}
	if !s.Tenant.Is(tenant) {
		return Session{}, 0, bus.ErrNotFound
	}
	return s, revision, nil
}

// End removes a session of the tenant, for all front doors. It does nothing if the session does not exist or
// belongs to another tenant.
func (t *Table) End(ctx context.Context, tenant schema.TenantID, key string) error {
	_, _, err := t.Get(ctx, tenant, key)
	if errors.Is(err, bus.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return t.rows.Delete(ctx, key)
}

// Close stops the watch on the table and waits for it.
func (t *Table) Close() { t.watch.Close() }
