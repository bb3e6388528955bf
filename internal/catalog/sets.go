package catalog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/callyard/callyard/internal/store/settable"
	"github.com/callyard/callyard/internal/toolset"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

// maxSets limits the number of sets of the installation, maxTenantSets that of another tenant, and
// maxTenantSetBytes the total size of a tenant's definitions. Tenants create sets without an
// operator, and every front door keeps them in memory and in its state file.
const (
	maxSets           = 1000
	maxTenantSets     = 100
	maxTenantSetBytes = 256 << 10
)

// ErrSetChanged means that the set no longer has the revision that the caller last saw.
var ErrSetChanged = errors.New("catalog: the set has changed")

// Set is a set of tools with its origin.
type Set struct {
	toolset.Set
	// Tenant is the owner. Sets of the default tenant belong to the installation: other tenants
	// see them too, if they see the server of each tool.
	Tenant schema.TenantID
	// Configured reports that the set comes from the configuration and cannot be changed over
	// the API.
	Configured bool
	// Revision increases with each change over the API.
	Revision uint64
	By       string
	At       time.Time
}

// SetTool is a tool with its name in a set.
type SetTool struct {
	Tool
	Name string
}

// SetView is a set with its current tools.
type SetView struct {
	Set
	// Tools lists the tools in the order of the set, including those that are switched off or
	// offline.
	Tools []SetTool
	// LeftOut lists the tools that have no name in the set, by the name that they share.
	LeftOut []toolset.Clash
}

// sets holds the sets of a catalog.
type sets struct {
	table *settable.Table // nil if NATS has no such table
	fault error           // the reason why table is nil

	mu         sync.Mutex
	configured toolset.All
	now        atomic.Pointer[composed] // nil if nothing was composed since the last change
}

// forget discards all compositions, so that each set is composed again on its next use.
func (k *sets) forget() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.now.Store(nil)
}

// Sets manages sets of tools. The name of a set is unique within its tenant. [Sets.View] resolves a
// name for a tenant. Sets is safe for concurrent use.
type Sets struct{ c *Catalog }

// Sets returns the part of the catalog that manages sets of tools.
func (c *Catalog) Sets() Sets { return Sets{c} }

// Configure replaces the sets of the configuration, which belong to the installation. The error
// names the invalid set and the reason.
func (s Sets) Configure(list []toolset.Set) error {
	all := make(toolset.All, len(list))
	for i := range list {
		all[list[i].Name] = &list[i]
	}
	for name := range all {
		if why := all.Check(name, nil); why != "" {
			return errors.New(why)
		}
	}
	k := &s.c.sets
	k.mu.Lock()
	k.configured = all
	k.mu.Unlock()
	s.changed()
	return nil
}

// List returns the sets that these tenants own, sorted by tenant and name. A set of the
// configuration hides a set of the API that has the same name.
func (s Sets) List(of schema.Tenants) []Set {
	k := &s.c.sets
	k.mu.Lock()
	defer k.mu.Unlock()
	var all []Set
	if of.Include(schema.DefaultTenant) {
		for _, set := range k.configured {
			all = append(all, configuredSet(set))
		}
	}
	if k.table != nil {
		for _, row := range k.table.All(of) {
			if row.Tenant == "" && k.configured[row.Name] != nil {
				continue
			}
			if set, err := s.ownedLocked(row.Tenant, row.Name); err == nil { // sets written by a newer version may be unreadable
				all = append(all, set)
			}
		}
	}
	slices.SortFunc(all, func(a, b Set) int {
		return strings.Compare(string(a.Tenant.Stored())+"/"+a.Name, string(b.Tenant.Stored())+"/"+b.Name)
	})
	return all
}

// states returns the states of the sets of all tenants, without parsing their definitions.
func (s Sets) states() map[setName]setState {
	k := &s.c.sets
	k.mu.Lock()
	defer k.mu.Unlock()
	all := make(map[setName]setState)
	if k.table != nil {
		for _, row := range k.table.All(schema.AllTenants()) {
			if _, revision, ok := k.table.Get(row.Tenant, row.Name); ok {
				all[setName{row.Tenant.OrDefault(), row.Name}] = setState{revision, row.By}
			}
		}
	}
	for name := range k.configured {
		all[setName{schema.DefaultTenant, name}] = setState{}
	}
	return all
}

// Owned returns a set that the tenant owns. The error is of KindNotFound.
func (s Sets) Owned(tenant schema.TenantID, name string) (Set, error) {
	s.c.sets.mu.Lock()
	defer s.c.sets.mu.Unlock()
	return s.ownedLocked(tenant, name)
}

func (s Sets) ownedLocked(tenant schema.TenantID, name string) (Set, error) {
	k := &s.c.sets
	if set := k.configured[name]; set != nil && tenant.Is(schema.DefaultTenant) {
		return configuredSet(set), nil
	}
	if k.table != nil {
		if row, revision, ok := k.table.Get(tenant, name); ok {
			if set, err := readSet(&row, revision); err == nil {
				return set, nil
			}
		}
	}
	return Set{}, noSet(name)
}

func configuredSet(set *toolset.Set) Set {
	return Set{Set: *set, Tenant: schema.DefaultTenant, Configured: true}
}

// noSet returns the error for a missing set, noSetTool the one for a tool that a set does not have.
func noSet(name string) error {
	return schema.Errorf(schema.KindNotFound, "There is no set %q. GET /sets lists the sets.", name)
}

func noSetTool(set, name string) error {
	return schema.Errorf(schema.KindNotFound, "Set %q has no tool %q. GET /sets/%s lists its tools.", set, name, set)
}

func readSet(row *settable.Set, revision uint64) (Set, error) {
	set := Set{Tenant: row.Tenant.OrDefault(), Revision: revision, By: row.By, At: row.At}
	if err := json.Unmarshal(row.Definition, &set.Set); err != nil {
		return Set{}, fmt.Errorf("reading set %q: %w", row.Name, err)
	}
	return set, nil
}

// Put stores a set of the tenant for all front doors; it survives restarts. It replaces the set
// that has the given revision; 0 creates a new set. Errors: [ErrSetChanged] if the set has another
// revision, already exists or was removed; KindConflict for a set of the configuration, for a name
// of an installation set that the tenant sees, or at a limit; KindInvalidRequest for a set that
// cannot be composed; KindUnavailable if it cannot be stored.
func (s Sets) Put(ctx context.Context, tenant schema.TenantID, set toolset.Set, revision uint64, by string) (Set, error) {
	if !tenant.Is(schema.DefaultTenant) {
		if now := s.composed(); now.definitions(tenant)[set.Name] == nil && now.sees(tenant, set.Name) != nil {
			return Set{}, schema.Errorf(schema.KindConflict, "The installation has a set %q; choose another name.", set.Name)
		}
	}
	return s.Restore(ctx, tenant, set, revision, by)
}

// Restore is [Sets.Put] for a set of an exported state. The set may have the name of a set of the
// installation that the tenant sees, because it was made before that one.
func (s Sets) Restore(ctx context.Context, tenant schema.TenantID, set toolset.Set, revision uint64, by string) (Set, error) {
	if err := s.changeable(tenant, set.Name); err != nil {
		return Set{}, err
	}
	if faults := set.Check(); len(faults) > 0 {
		return Set{}, schema.Errorf(schema.KindInvalidRequest, "The set is invalid: %s %s", faults[0].Path, faults[0].Message)
	}
	now := s.composed()
	all := now.definitions(tenant)
	all[set.Name] = &set
	most := maxSets
	if !tenant.Is(schema.DefaultTenant) {
		most = maxTenantSets
	}
	if len(all) > most {
		return Set{}, schema.Errorf(schema.KindConflict, "There are %d sets, which is the limit; remove one first.", most)
	}
	if why := all.Check(set.Name, func(name string) *toolset.Composition { return now.sees(tenant, name) }); why != "" {
		return Set{}, schema.Errorf(schema.KindInvalidRequest, "The set is invalid: %s", why)
	}
	definition, err := json.Marshal(set)
	if err != nil {
		return Set{}, schema.Errorf(schema.KindInternal, "The set cannot be encoded: %w", err)
	}
	if err := s.space(tenant, set.Name, len(definition)); err != nil {
		return Set{}, err
	}
	table, row := s.c.sets.table, settable.Set{Tenant: tenant.Stored(), Name: set.Name, Definition: definition, By: by, At: time.Now().UTC()}
	if revision == 0 {
		revision, err = table.Create(ctx, row)
	} else {
		revision, err = table.Replace(ctx, row, revision)
	}
	if err := s.stored(err); err != nil {
		return Set{}, err
	}
	return readSet(&row, revision)
}

// space returns an error if a set of this size would exceed the memory limit of the tenant's sets.
// The default tenant has no limit.
func (s Sets) space(tenant schema.TenantID, name string, size int) error {
	if tenant.Is(schema.DefaultTenant) {
		return nil
	}
	for _, row := range s.c.sets.table.All(schema.OnlyTenant(tenant)) {
		if row.Name != name {
			size += len(row.Definition)
		}
	}
	if size > maxTenantSetBytes {
		return schema.Errorf(schema.KindConflict, "The sets of the tenant would take %d bytes, more than %d; remove one, or select with patterns.", size, maxTenantSetBytes)
	}
	return nil
}

// Remove removes the set of the tenant that has the given revision. Errors: [ErrSetChanged] if it
// has another revision; KindNotFound; KindConflict for a set of the configuration, or one that
// other sets of the tenant or switches refer to; KindUnavailable if the removal cannot be stored.
func (s Sets) Remove(ctx context.Context, tenant schema.TenantID, name string, revision uint64) error {
	if _, err := s.Owned(tenant, name); err != nil {
		return err
	}
	if err := s.changeable(tenant, name); err != nil {
		return err
	}
	for _, sw := range s.c.Switches().List() {
		if sw.Set == name && tenant.Is(schema.DefaultTenant) { // switches refer to sets of the installation
			return schema.Errorf(schema.KindConflict, "Tools of set %q are disabled by it; enable them first.", name)
		}
	}
	if users := s.composed().definitions(tenant).UsedBy(name); len(users) > 0 {
		return schema.Errorf(schema.KindConflict, "Set %q is named by other sets: %s. Change those first.", name, strings.Join(users, ", "))
	}
	return s.stored(s.c.sets.table.Remove(ctx, tenant, name, revision))
}

// changeable returns an error if the set cannot be changed over the API.
func (s Sets) changeable(tenant schema.TenantID, name string) error {
	k := &s.c.sets
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.configured[name] != nil && tenant.Is(schema.DefaultTenant) {
		return schema.Errorf(schema.KindConflict, "Set %q is in the configuration (front_door.sets); change it there.", name)
	}
	if k.table == nil {
		return schema.Errorf(schema.KindUnavailable, "Sets cannot be stored: %w", k.fault)
	}
	return nil
}

// stored converts the result of a write into the error for callers.
func (s Sets) stored(err error) error {
	switch {
	case errors.Is(err, bus.ErrConflict):
		return ErrSetChanged
	case err != nil:
		return notStored("change", err)
	}
	s.changed()
	return nil
}

// changed updates the view after a set was changed by any front door.
func (s Sets) changed() {
	s.c.sets.forget()
	s.c.switched() // switches may refer to sets
}
