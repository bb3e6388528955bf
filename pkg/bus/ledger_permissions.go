package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
)

// Permissions is the table of standing permissions. It knows ids, rows and
// revisions; what a permission allows is decided in internal/ledger. Of all who
// write a row at once one wins. All methods are safe for concurrent use.
type Permissions[T any] struct {
	c    *Conn
	rows *Records[T]
}

var permissionsTable = heldRows(bucketPermissions, "standing permissions")

// OpenPermissions opens the table. id names a row.
func OpenPermissions[T any](ctx context.Context, c *Conn, id func(*T) string) (*Permissions[T], error) {
	rows, err := openRecords(ctx, c, permissionsTable, func(v *T) string { return kvKey(id(v)) }, nil)
	if err != nil {
		return nil, err
	}
	return &Permissions[T]{c, rows}, nil
}

// All returns every row as this process knows it, in no order.
func (p *Permissions[T]) All() []T { return p.rows.All() }

// Create writes a row where there is none; [ErrConflict] means that there is one.
func (p *Permissions[T]) Create(ctx context.Context, v T) error {
	return p.write(v, func(key string, body []byte) (uint64, error) { return p.rows.kv.Create(ctx, key, body) })
}

// Replace writes a row when its revision is still the given one; [ErrConflict]
// means that another writer was first.
func (p *Permissions[T]) Replace(ctx context.Context, v T, revision uint64) error {
	return p.write(v, func(key string, body []byte) (uint64, error) { return p.rows.kv.Update(ctx, key, body, revision) })
}

func (p *Permissions[T]) write(v T, store func(key string, body []byte) (uint64, error)) error {
	body, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encoding the permission: %w", err)
	}
	key := p.rows.key(&v)
	revision, err := store(key, body)
	var api *jetstream.APIError
	switch {
	case err == nil:
		p.rows.keep(key, row[T]{value: v, revision: revision})
		return nil
	case errors.Is(err, jetstream.ErrKeyExists), errors.As(err, &api) && (api.ErrorCode == codeWrongLast || api.ErrorCode == codeWrongLastPlain):
		return ErrConflict
	}
	return fmt.Errorf("storing the permission: %w", err)
}

// Fresh reads a row and its revision from the table's leader, which has every
// write that was acknowledged; [ErrNotFound] means that there is none.
func (p *Permissions[T]) Fresh(ctx context.Context, id string) (v T, revision uint64, err error) {
	m, err := p.c.leader(ctx, "KV_"+bucketPermissions, "$KV."+bucketPermissions+"."+kvKey(id))
	if err != nil {
		return v, 0, err
	}
	if len(m.data) == 0 { // the mark of a row that was removed
		return v, 0, ErrNotFound
	}
	if err := json.Unmarshal(m.data, &v); err != nil {
		return v, 0, fmt.Errorf("decoding the permission: %w", err)
	}
	p.rows.keep(kvKey(id), row[T]{value: v, revision: m.sequence})
	return v, m.sequence, nil
}

// Delete removes a row.
func (p *Permissions[T]) Delete(ctx context.Context, id string) error {
	return p.rows.Delete(ctx, kvKey(id))
}

// Close ends the watch on the table and waits for it.
func (p *Permissions[T]) Close() { p.rows.Close() }
