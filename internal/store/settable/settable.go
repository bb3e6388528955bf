// Package settable stores the tool sets that were created with the API. Every front door sees each write.
// A change names the revision that it changes, so no change is lost. Each set belongs to a tenant; those
// of the default tenant belong to the installation. A set of another tenant is treated as nonexistent.
//
// Rows of the default tenant have the key and the format from before sets had tenants. Rows of other
// tenants have different keys, and members that older versions do not know: an older front door finds no
// name and no definition in them, and skips them.
package settable

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

// Set is a set that was created with the API. Definition is an internal/toolset.Set as JSON.
type Set struct {
	Tenant     schema.TenantID // in the format of [schema.TenantID.Stored]
	Name       string
	Definition json.RawMessage
	By         string
	At         time.Time
}

// row is the stored form of a set. A set of the default tenant uses the first two members, one of another
// tenant the next three.
type row struct {
	Name          string          `json:"name,omitempty"`
	Definition    json.RawMessage `json:"definition,omitempty"`
	Tenant        schema.TenantID `json:"tenant,omitempty"`
	OwnName       string          `json:"own_name,omitempty"`
	OwnDefinition json.RawMessage `json:"own_definition,omitempty"`
	By            string          `json:"by,omitempty"`
	At            time.Time       `json:"at"`
}

// MarshalJSON encodes the stored form of the set.
func (s Set) MarshalJSON() ([]byte, error) {
	r := row{Name: s.Name, Definition: s.Definition, By: s.By, At: s.At}
	if r.Tenant = s.Tenant.Stored(); r.Tenant != "" {
		r.OwnName, r.OwnDefinition, r.Name, r.Definition = r.Name, r.Definition, "", nil
	}
	return json.Marshal(r)
}

// UnmarshalJSON decodes the stored form of a set.
func (s *Set) UnmarshalJSON(text []byte) error {
	var r row
	if err := json.Unmarshal(text, &r); err != nil {
		return err
	}
	*s = Set{Name: r.Name, Definition: r.Definition, By: r.By, At: r.At}
	if s.Tenant = r.Tenant.Stored(); s.Tenant != "" {
		s.Name, s.Definition = r.OwnName, r.OwnDefinition
	}
	return nil
}

// history is for people only: the table needs just the last write.
const history = 5

var spec = bus.TableSpec{Bucket: bus.BucketSets, What: "sets of tools", History: history}

// Specs returns the specs of all tables, for [bus.Provision].
func Specs() []bus.TableSpec { return []bus.TableSpec{spec} }

// Table is the open table. It is safe for concurrent use. Close it after use.
type Table struct{ rows *bus.Table[Set] }

// Open opens the table. changed is called after every change, on one goroutine.
func Open(ctx context.Context, c *bus.Conn, changed func()) (*Table, error) {
	rows, err := bus.OpenTable(ctx, c, spec, func(s *Set) string { return key(s.Tenant, s.Name) }, changed)
	if err != nil {
		return nil, err
	}
	return &Table{rows}, nil
}

// Close stops the watch on the table and waits for it.
func (t *Table) Close() { t.rows.Close() }

// key returns the row key of a set.
func key(tenant schema.TenantID, name string) string {
	if tenant.Is(schema.DefaultTenant) {
		return bus.Token(name)
	}
	return bus.Token(tenant) + "." + bus.Token(name)
}

// Get returns a set of the tenant and its revision, from this process's view.
func (t *Table) Get(tenant schema.TenantID, name string) (s Set, revision uint64, ok bool) {
	s, revision, ok = t.rows.Revision(key(tenant, name))
	if !ok || s.Name != name || !s.Tenant.Is(tenant) {
		return Set{}, 0, false
	}
	return s, revision, true
}

// All returns every set of these tenants in this process's view, in no particular order.
func (t *Table) All(of schema.Tenants) []Set {
	return slices.DeleteFunc(t.rows.All(), func(s Set) bool { return !of.Include(s.Tenant) })
}

// Create stores a set of the tenant that it names. [bus.ErrConflict] means that it exists already.
func (t *Table) Create(ctx context.Context, s Set) (uint64, error) { return t.rows.Create(ctx, s) }

// Replace stores a set of the tenant that it names if its current revision is the given one, else it returns
// [bus.ErrConflict].
func (t *Table) Replace(ctx context.Context, s Set, revision uint64) (uint64, error) {
	return t.rows.Replace(ctx, s, revision)
}

// Remove removes a set of the tenant if its current revision is the given one, else it returns
// [bus.ErrConflict].
func (t *Table) Remove(ctx context.Context, tenant schema.TenantID, name string, revision uint64) error {
	return t.rows.Remove(ctx, key(tenant, name), revision)
}

// RemoveTenant removes the sets of a tenant other than the default one, and returns their number. It is
// idempotent, and returns 0 if the table does not exist.
func RemoveTenant(ctx context.Context, c *bus.Conn, tenant schema.TenantID) (removed int, err error) {
	return bus.RemoveUnder(ctx, c, spec, bus.Token(tenant))
}
