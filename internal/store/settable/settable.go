// Package settable keeps the sets of tools that were made over the API. Every front door
// sees each write; a change names the revision that it changes, so none is lost. Each set is of a
// tenant; those of the default one are the installation's. A set of another tenant is answered
// like one that does not exist.
//
// Rows of the default tenant have the key and the form that they had before sets had tenants.
// Those of other tenants have keys of their own, and members that the versions before do not
// know: an older front door finds no name and no definition in them, and leaves them out.
package settable

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

// Set is a set that was made over the API. Definition is an internal/toolset.Set as JSON.
type Set struct {
	Tenant     schema.TenantID // in the form of [schema.TenantID.Stored]
	Name       string
	Definition json.RawMessage
	By         string
	At         time.Time
}

// row is a set as it is stored: one of the default tenant has the first two members, one of
// another tenant the next three.
type row struct {
	Name          string          `json:"name,omitempty"`
	Definition    json.RawMessage `json:"definition,omitempty"`
	Tenant        schema.TenantID `json:"tenant,omitempty"`
	OwnName       string          `json:"own_name,omitempty"`
	OwnDefinition json.RawMessage `json:"own_definition,omitempty"`
	By            string          `json:"by,omitempty"`
	At            time.Time       `json:"at"`
}

// MarshalJSON writes the set as it is stored.
func (s Set) MarshalJSON() ([]byte, error) {
	r := row{Name: s.Name, Definition: s.Definition, By: s.By, At: s.At}
	if r.Tenant = s.Tenant.Stored(); r.Tenant != "" {
		r.OwnName, r.OwnDefinition, r.Name, r.Definition = r.Name, r.Definition, "", nil
	}
	return json.Marshal(r)
}

// UnmarshalJSON reads a set as it is stored.
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

// history is for people: the table needs the last write alone.
const history = 5

var spec = bus.TableSpec{Bucket: bus.BucketSets, What: "sets of tools", History: history}

// Specs are all tables, for [bus.Provision].
func Specs() []bus.TableSpec { return []bus.TableSpec{spec} }

// Table is the open table. It is safe for concurrent use; Close ends it.
type Table struct{ rows *bus.Table[Set] }

// Open opens the table. changed is called after every change, on one goroutine.
func Open(ctx context.Context, c *bus.Conn, changed func()) (*Table, error) {
	rows, err := bus.OpenTable(ctx, c, spec, func(s *Set) string { return key(s.Tenant, s.Name) }, changed)
	if err != nil {
		return nil, err
	}
	return &Table{rows}, nil
}

// Close ends the watch on the table and waits for it.
func (t *Table) Close() { t.rows.Close() }

// key is the key of the row of a set.
func key(tenant schema.TenantID, name string) string {
	if tenant.Is(schema.DefaultTenant) {
		return bus.Token(name)
	}
	return bus.Token(tenant) + "." + bus.Token(name)
}

// Get returns a set of the tenant as this process knows it, and the revision that wrote it.
func (t *Table) Get(tenant schema.TenantID, name string) (s Set, revision uint64, ok bool) {
	s, revision, ok = t.rows.Revision(key(tenant, name))
	if !ok || s.Name != name || !s.Tenant.Is(tenant) {
		return Set{}, 0, false
	}
	return s, revision, true
}

// All returns every set of these tenants as this process knows it, in no order.
func (t *Table) All(of schema.Tenants) []Set {
	return slices.DeleteFunc(t.rows.All(), func(s Set) bool { return !of.Include(s.Tenant) })
}

// Create stores a set, of the tenant that it names, where there is none; [bus.ErrConflict] means
// that there is one.
func (t *Table) Create(ctx context.Context, s Set) (uint64, error) { return t.rows.Create(ctx, s) }

// Replace stores a set, of the tenant that it names, when its revision is still the given one;
// [bus.ErrConflict] means that it is not.
func (t *Table) Replace(ctx context.Context, s Set, revision uint64) (uint64, error) {
	return t.rows.Replace(ctx, s, revision)
}

// Remove removes a set of the tenant when its revision is still the given one;
// [bus.ErrConflict] means that it is not.
func (t *Table) Remove(ctx context.Context, tenant schema.TenantID, name string, revision uint64) error {
	return t.rows.Remove(ctx, key(tenant, name), revision)
}

// RemoveTenant removes the sets of a tenant other than the default one, and returns their number.
// It may be repeated. Without the table there are none.
func RemoveTenant(ctx context.Context, c *bus.Conn, tenant schema.TenantID) (removed int, err error) {
	return bus.RemoveUnder(ctx, c, spec, bus.Token(tenant))
}
