package keytable

import (
	"context"
	"slices"

	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

// history is for people only: the tables need just the last write.
const history = 5

var (
	keys = bus.TableSpec{Bucket: bus.BucketAPIKeys, What: "API keys", History: history}
	uses = bus.TableSpec{Bucket: bus.BucketKeyUses, What: "uses of API keys"}
)

// Specs returns the specs of all tables, for [bus.Provision].
func Specs() []bus.TableSpec { return []bus.TableSpec{keys, uses} }

// Table holds the open tables of keys and of their last uses. It is safe for concurrent use. Close it
// after use.
type Table struct {
	keys *bus.Table[Key]
	uses *bus.Table[Use]
}

// Open opens both tables, or returns an error.
func Open(ctx context.Context, c *bus.Conn) (*Table, error) {
	all, err := bus.OpenTable(ctx, c, keys, func(k *Key) string { return row(k.ID) }, nil)
	if err != nil {
		return nil, err
	}
	used, err := bus.OpenTable(ctx, c, uses, func(u *Use) string { return row(u.ID) }, nil)
	if err != nil {
		all.Close()
		return nil, err
	}
	return &Table{all, used}, nil
}

// Close stops the watches on the tables and waits for them.
func (t *Table) Close() {
	t.uses.Close()
	t.keys.Close()
}

// row returns the row key of a key.
func row(id string) string { return bus.Token(id) }

// Get returns a key of these tenants and its revision from this process's view, without a request.
func (t *Table) Get(of schema.Tenants, id string) (k Key, revision uint64, ok bool) {
	k, revision, ok = t.keys.Revision(row(id))
	if !ok || k.ID != id || !of.Include(k.Tenant) {
		return Key{}, 0, false
	}
	return k, revision, true
}

// Fresh reads a key of these tenants from the table's leader, which has every acknowledged write.
// [bus.ErrNotFound] means that there is none.
func (t *Table) Fresh(ctx context.Context, of schema.Tenants, id string) (Key, error) {
	k, _, err := t.keys.Fresh(ctx, row(id))
	if err == nil && (k.ID != id || !of.Include(k.Tenant)) {
		err = bus.ErrNotFound
	}
	if err != nil {
		return Key{}, err
	}
	return k, nil
}

// All returns every key of these tenants in this process's view, in no particular order.
func (t *Table) All(of schema.Tenants) []Key {
	return slices.DeleteFunc(t.keys.All(), func(k Key) bool { return !of.Include(k.Tenant) })
}

// Some reports whether any tenant has keys, or had some.
func (t *Table) Some() bool { return t.keys.Some() }

// Create stores a key of the tenant that it names. [bus.ErrConflict] means that the id exists already.
func (t *Table) Create(ctx context.Context, k Key) (uint64, error) { return t.keys.Create(ctx, k) }

// Replace stores a key of the tenant if its current revision is the given one. The error is
// [bus.ErrConflict] if it is another one, or the tenant has no such key.
func (t *Table) Replace(ctx context.Context, tenant schema.TenantID, k Key, revision uint64) (uint64, error) {
	if _, _, ok := t.Get(schema.OnlyTenant(tenant), k.ID); !ok || !k.Tenant.Is(tenant) {
		return 0, bus.ErrConflict
	}
	return t.keys.Replace(ctx, k, revision)
}

// Remove removes a key of the tenant, with its last use, if its current revision is the given one. left is
// the reason why the last use was not removed, if it was not. Errors are those of [Table.Replace].
func (t *Table) Remove(ctx context.Context, tenant schema.TenantID, id string, revision uint64) (left, err error) {
	if _, _, ok := t.Get(schema.OnlyTenant(tenant), id); !ok {
		return nil, bus.ErrConflict
	}
	if err := t.keys.Remove(ctx, row(id), revision); err != nil {
		return nil, err
	}
	return t.uses.Delete(ctx, row(id)), nil
}

// LastUse returns the last use of a key of the tenant in this process's view, or the zero Use if there is
// none.
func (t *Table) LastUse(tenant schema.TenantID, id string) (u Use) {
	if _, _, ok := t.Get(schema.OnlyTenant(tenant), id); ok {
		u, _ = t.uses.Get(row(id))
	}
	return u
}

// PutUse stores the last use of a key of the tenant. Of two writes, the later one wins. The error is
// [bus.ErrNotFound] if the tenant has no such key.
func (t *Table) PutUse(ctx context.Context, tenant schema.TenantID, u Use) error {
	if _, _, ok := t.Get(schema.OnlyTenant(tenant), u.ID); !ok {
		return bus.ErrNotFound
	}
	return t.uses.Put(ctx, u)
}
