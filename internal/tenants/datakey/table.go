package datakey

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"golang.org/x/crypto/chacha20poly1305"

	"github.com/callyard/callyard/internal/credential"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

// row is the stored key of a tenant, or the marker of its destruction.
type row struct {
	Tenant  schema.TenantID `json:"tenant"`
	ID      string          `json:"id,omitempty"`
	Key     []byte          `json:"key,omitempty"` // wrapped
	Created time.Time       `json:"created,omitzero"`
	// Destroyed is the time of the destruction. Of the other fields only Tenant is set then.
	Destroyed time.Time `json:"destroyed,omitzero"`

	sequence uint64
}

func (r *row) destroyed() bool { return !r.Destroyed.IsZero() }

// Streams returns the streams of package datakey. It is not a JetStream key-value bucket: in those,
// messages cannot be erased, and an overwritten value stays in the files of the server.
func Streams() []bus.StreamSpec {
	return []bus.StreamSpec{{Name: bus.StreamDataKeys, What: "data keys of tenants", Subjects: []string{bus.SubjectDataKey + "*"}, Logs: true}}
}

// table is the stored rows. It is safe for concurrent use.
type table struct{ s *bus.Stream }

func openTable(ctx context.Context, c *bus.Conn) (*table, error) {
	s, err := bus.OpenStream(ctx, c, Streams()[0])
	if err != nil {
		return nil, err
	}
	return &table{s}, nil
}

func subject(tenant schema.TenantID) string {
	return bus.SubjectDataKey + bus.Token(tenant.OrDefault())
}

// watch calls f with each existing row, and then with each new one.
func (t *table) watch(ctx context.Context, f func(*row)) (*bus.StreamWatch, error) {
	return t.s.Watch(ctx, bus.SubjectDataKey+"*", func(m bus.Message) {
		if r, err := decode(m); err == nil {
			f(r)
		}
	})
}

func decode(m bus.Message) (*row, error) {
	r := &row{sequence: m.Sequence}
	if err := json.Unmarshal(m.Data, r); err != nil {
		return nil, fmt.Errorf("reading the data key of a tenant: %w", err)
	}
	return r, nil
}

// last reads the newest row of a tenant from the leader, or nil if there is none.
func (t *table) last(ctx context.Context, tenant schema.TenantID) (*row, error) {
	m, err := t.s.Last(ctx, subject(tenant), bus.Leader)
	if errors.Is(err, bus.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return decode(m)
}

// put writes a row if the last one has the sequence after.
func (t *table) put(ctx context.Context, r *row, after uint64) error {
	data, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encoding the data key of a tenant: %w", err)
	}
	r.sequence, err = t.s.PutAfter(ctx, bus.Message{Subject: subject(r.Tenant), Data: data}, after)
	return err
}

// take returns the row of a tenant with its key. If there is none, it writes the row of made. Of
// several concurrent writers, one succeeds.
func (t *table) take(ctx context.Context, tenant schema.TenantID, made func(schema.TenantID) (*row, error)) (*row, error) {
	for {
		was, err := t.last(ctx, tenant)
		if err != nil {
			return nil, err
		}
		if was != nil && !was.destroyed() {
			return was, nil
		}
		after := uint64(0)
		if was != nil {
			after = was.sequence
		}
		next, err := made(tenant)
		if err != nil {
			return nil, err
		}
		// After an error, read the row again: the reply may be lost, or another writer was first.
		if err = t.put(ctx, next, after); err == nil {
			return next, nil
		}
		if !errors.Is(err, bus.ErrConflict) {
			return nil, err
		}
	}
}

// all reads every row from the leader.
func (t *table) all(ctx context.Context) ([]row, error) { return t.rows(ctx, bus.SubjectDataKey+"*") }

func (t *table) rows(ctx context.Context, subject string) (all []row, err error) {
	for next := uint64(1); ; {
		m, err := t.s.Next(ctx, subject, next, bus.Leader)
		if errors.Is(err, bus.ErrNotFound) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		next = m.Sequence + 1
		r, err := decode(m)
		if err != nil {
			return nil, err
		}
		all = append(all, *r)
	}
}

// eraseBefore makes NATS overwrite the rows of a tenant before a sequence.
func (t *table) eraseBefore(ctx context.Context, tenant schema.TenantID, before uint64) error {
	rows, err := t.rows(ctx, subject(tenant))
	if err != nil {
		return err
	}
	for i := range rows {
		if rows[i].sequence < before {
			if err := t.s.Erase(ctx, rows[i].sequence); err != nil {
				return err
			}
		}
	}
	return nil
}

// newRow creates a data key.
func (r *Ring) newRow(tenant schema.TenantID) (*row, error) {
	var id keyID
	var key [chacha20poly1305.KeySize]byte
	_, _ = rand.Read(id[:]) // it cannot fail
	_, _ = rand.Read(key[:])
	next := &row{Tenant: tenant, ID: hex.EncodeToString(id[:]), Created: time.Now().UTC().Truncate(time.Second)}
	var err error
	next.Key, err = r.keys.Seal(key[:], wrapPlace(tenant, next.ID)...)
	return next, err
}

// CountKeys counts the data keys by the [credential.KeyName] of the operator's key that wraps them.
func CountKeys(ctx context.Context, c *bus.Conn) (map[string]int, error) {
	s, err := bus.FindStream(ctx, c, Streams()[0])
	if errors.Is(err, bus.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	rows, err := (&table{s}).all(ctx)
	if err != nil {
		return nil, err
	}
	counts := map[string]int{}
	for i := range rows {
		if !rows[i].destroyed() {
			counts[credential.KeyName(rows[i].Key)]++
		}
	}
	return counts, nil
}

// rewrap wraps the data keys again that are not wrapped with the operator's newest key, and
// overwrites their former rows. It completes an interrupted earlier run.
func (r *Ring) rewrap(ctx context.Context) error {
	rows, err := r.table.all(ctx)
	if err != nil {
		return err
	}
	newest, former := map[schema.TenantID]*row{}, map[schema.TenantID]bool{}
	for i := range rows {
		tenant := rows[i].Tenant.OrDefault()
		former[tenant] = newest[tenant] != nil
		newest[tenant] = &rows[i]
	}
	wrapped := 0
	for tenant, row := range newest {
		if !row.destroyed() && !r.keys.Newest(row.Key) {
			raw, err := r.keys.Open(row.Key, wrapPlace(row.Tenant, row.ID)...)
			if err != nil {
				return fmt.Errorf("wrapping the data key of tenant %q again: %w", tenant, err)
			}
			after := row.sequence
			if row.Key, err = r.keys.Seal(raw, wrapPlace(row.Tenant, row.ID)...); err != nil {
				return err
			}
			if err = r.table.put(ctx, row, after); errors.Is(err, bus.ErrConflict) {
				continue // another process does the same
			}
			if err != nil {
				return fmt.Errorf("wrapping the data key of tenant %q again: %w", tenant, err)
			}
			former[tenant] = true
			wrapped++
		}
		if !former[tenant] {
			continue
		}
		if err := r.table.eraseBefore(ctx, tenant, row.sequence); err != nil {
			return fmt.Errorf("erasing former rows of the data key of tenant %q: %w", tenant, err)
		}
	}
	if wrapped > 0 {
		r.log.Info("the data keys of tenants are wrapped with the newest key of encryption.key_file", "count", wrapped)
	}
	return nil
}
