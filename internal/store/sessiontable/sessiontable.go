// Package sessiontable keeps the sessions of MCP clients, which all front doors share. A
// session is forgotten 24 hours after it was last written. The table knows no id of a
// session, only digests.
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
	kept = 24 * time.Hour // after a session was opened, or last written
	most = 64 << 20       // bytes of all of them
)

var spec = bus.TableSpec{Bucket: bus.BucketSessions, What: "sessions of MCP clients", Keep: kept, MaxBytes: most}

// Specs are all tables, for [bus.Provision].
func Specs() []bus.TableSpec { return []bus.TableSpec{spec} }

// Session is what a front door needs to know of a session that another one opened.
type Session struct {
	Principal    string          `json:"principal"`
	Tenant       schema.TenantID `json:"tenant,omitempty"` // of the principal, in the stored form
	Mount        string          `json:"mount,omitempty"`  // the server of the endpoint, "" for all
	Version      string          `json:"version"`          // revision of the protocol
	Capabilities json.RawMessage `json:"capabilities,omitempty"`
	Name         string          `json:"name"`            // by which workers know it
	Level        string          `json:"level,omitempty"` // of log messages
}

// Table is the open table. It is safe for concurrent use; Close ends it.
type Table struct {
	rows  *bus.Bucket
	watch *bus.StreamWatch
}

// Open opens the table. changed is called with the key of each session that is written or
// ended from now on and the revision of that write, on one goroutine; see [Key]. Of
// several writes of one session in a row it may be told the last alone.
func Open(ctx context.Context, c *bus.Conn, changed func(key string, revision uint64, ended bool)) (*Table, error) {
	rows, err := bus.OpenBucket(ctx, c, spec)
	if err != nil {
		return nil, err
	}
	watch, err := rows.Watch(ctx, changed)
	if err != nil {
		return nil, err
	}
	return &Table{rows, watch}, nil
}

// Key is the key of a session in the table: a digest of its id, so that who reads the
// table learns no id.
func Key(id string) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:])
}

// Put stores a session of the tenant, for every front door, and returns the revision of the write.
func (t *Table) Put(ctx context.Context, tenant schema.TenantID, key string, s Session) (revision uint64, err error) {
	s.Tenant = tenant.Stored()
	row, err := json.Marshal(s)
	if err != nil {
		return 0, fmt.Errorf("encoding the session: %w", err)
	}
	return t.rows.Put(ctx, key, row)
}

// Get returns a session of the tenant and its revision; [bus.ErrNotFound] for one that was
// never stored, is of another tenant, has ended or was forgotten. What versions without
// tenants stored is of the default one.
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

// End removes a session of the tenant, for every front door. One that is not there, or is of
// another tenant, is none to remove.
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

// Close ends the watch on the table and waits for it.
func (t *Table) Close() { t.watch.Close() }
