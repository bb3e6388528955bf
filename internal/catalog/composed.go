package catalog

import (
	"cmp"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/callyard/callyard/internal/format"
	"github.com/callyard/callyard/internal/toolset"
	"github.com/callyard/callyard/pkg/schema"
)

// composed holds the sets as composed from the tools at one point in time. Each change of the
// fleet or of a set discards it. A set is composed when it is first used.
//
// The sets of a tenant are composed under their own lock and without the catalog's, so that a
// tenant with many or large sets delays only itself.
type composed struct {
	k       *sets
	tenants Tenants
	tools   []*toolset.Tool // sorted by server and name
	log     *slog.Logger

	mu sync.Mutex
	of map[schema.TenantID]*composedOf
}

// composedOf holds the sets that one tenant owns.
type composedOf struct {
	tools []*toolset.Tool // the tools that the tenant sees
	all   toolset.All
	outer toolset.Outer

	mu   sync.Mutex
	made map[string]*composition
}

// composition is a composed set, or the error that prevents its composition.
type composition struct {
	*toolset.Composition
	members map[toolName]struct{}
	servers []schema.ServerID // the servers of its tools, without duplicates
	err     error
}

// has reports whether a tool has a name in the set. A nil composition has no tools.
func (m *composition) has(tool toolName) bool {
	if m == nil || m.err != nil {
		return false
	}
	_, ok := m.members[tool]
	return ok
}

// composed returns the current composition of all sets.
func (s Sets) composed() *composed {
	if now := s.c.sets.now.Load(); now != nil {
		return now
	}
	s.c.mu.RLock()
	defer s.c.mu.RUnlock()
	return s.composedLocked()
}

// composedLocked is composed for callers that hold c.mu.
func (s Sets) composedLocked() *composed {
	k := &s.c.sets
	k.mu.Lock() // a change is stored before forget is called, so no outdated composition is kept
	defer k.mu.Unlock()
	now := k.now.Load()
	if now == nil {
		now = &composed{k: k, tenants: TenantsOf(s.c), tools: s.everyToolLocked(), log: s.c.log, of: make(map[schema.TenantID]*composedOf)}
		now.of[""] = now.owned(schema.DefaultTenant)
		k.now.Store(now)
	}
	return now
}

// owned reads the sets of a tenant.
func (p *composed) owned(tenant schema.TenantID) *composedOf {
	of := &composedOf{tools: p.tools, all: make(toolset.All), made: make(map[string]*composition)}
	if p.k.table != nil {
		for _, row := range p.k.table.All(schema.OnlyTenant(tenant)) {
			var set toolset.Set
			if json.Unmarshal(row.Definition, &set) == nil { // sets written by a newer version may be unreadable
				of.all[row.Name] = &set
			}
		}
	}
	if tenant.Is(schema.DefaultTenant) {
		maps.Copy(of.all, p.k.configured) // the caller holds k.mu: the default tenant's sets are read first
		return of
	}
	of.tools = slices.DeleteFunc(slices.Clone(p.tools), func(t *toolset.Tool) bool { return !p.tenants.Sees(tenant, t.Server) })
	of.outer = func(name string) *toolset.Composition {
		if made := p.installation(tenant, name); made != nil {
			return made.Composition
		}
		return nil
	}
	return of
}

// by returns the sets that a tenant owns.
func (p *composed) by(tenant schema.TenantID) *composedOf {
	p.mu.Lock()
	defer p.mu.Unlock()
	of := p.of[tenant.Stored()]
	if of == nil {
		of = p.owned(tenant)
		p.of[tenant.Stored()] = of
	}
	return of
}

// definitions returns the sets that a tenant owns, by name. The caller may change the map.
func (p *composed) definitions(tenant schema.TenantID) toolset.All {
	return maps.Clone(p.by(tenant).all)
}

// set returns a set that the tenant owns, or nil if it owns none of that name.
func (p *composed) set(tenant schema.TenantID, name string) *composition {
	of := p.by(tenant)
	if of.all[name] == nil {
		return nil
	}
	of.mu.Lock()
	defer of.mu.Unlock()
	made := of.made[name]
	if made == nil {
		made = &composition{}
		if made.Composition, made.err = of.all.Compose(name, of.tools, of.outer); made.err == nil {
			made.members = make(map[toolName]struct{}, len(made.Members))
			for _, m := range made.Members {
				made.members[toolName{m.Tool.Server, m.Tool.Name}] = struct{}{}
				if !slices.Contains(made.servers, m.Tool.Server) {
					made.servers = append(made.servers, m.Tool.Server)
				}
			}
			if len(made.LeftOut) > 0 {
				p.log.Warn("tools of a set have no name of their own and are left out; set names.conflict to prefer or rename", "tenant", tenant.OrDefault(), "set", name, "name", made.LeftOut[0].Name, "names", len(made.LeftOut))
			}
		}
		of.made[name] = made
	}
	return made
}

// installation returns a set of the installation if the tenant sees the servers of all its tools.
// Otherwise it returns nil.
func (p *composed) installation(tenant schema.TenantID, name string) *composition {
	made := p.set(schema.DefaultTenant, name)
	if made == nil || made.err != nil || slices.ContainsFunc(made.servers, func(id schema.ServerID) bool { return !p.tenants.Sees(tenant, id) }) {
		return nil
	}
	return made
}

// sees returns a set of the installation if the tenant sees it, else nil. A set without tools is
// not visible.
func (p *composed) sees(tenant schema.TenantID, name string) *toolset.Composition {
	if made := p.installation(tenant, name); made != nil && len(made.Members) > 0 {
		return made.Composition
	}
	return nil
}

// find resolves a set name for a tenant: its own set, else the installation's, whether or not the
// tenant sees that one. It also returns the owner. made is nil if neither exists.
func (p *composed) find(tenant schema.TenantID, name string) (made *composition, owner schema.TenantID) {
	if !tenant.Is(schema.DefaultTenant) {
		if own := p.set(tenant, name); own != nil {
			return own, tenant
		}
	}
	return p.set(schema.DefaultTenant, name), schema.DefaultTenant
}

// View resolves a set name for a tenant and returns the current tools of the set. The tenant's own
// set comes before the installation's, which is returned whether or not the tenant sees it. Errors:
// KindNotFound, or KindConflict if the set can no longer be composed because a set that it names
// was removed.
func (s Sets) View(tenant schema.TenantID, name string) (*SetView, error) {
	made, owner := s.composed().find(tenant, name)
	if made == nil {
		return nil, noSet(name)
	}
	set, err := s.Owned(owner, name)
	if err != nil {
		return nil, err
	}
	view := &SetView{Set: set}
	if made.err != nil {
		return view, schema.Errorf(schema.KindConflict, "Set %q cannot be used: %w", name, made.err)
	}
	view.Tools, view.LeftOut = make([]SetTool, 0, len(made.Members)), made.LeftOut
	s.c.mu.RLock()
	defer s.c.mu.RUnlock()
	for _, m := range made.Members {
		if of := s.c.servers[m.Tool.Server]; of != nil { // the server may have been removed in the meantime
			view.Tools = append(view.Tools, SetTool{Tool: s.c.toolLocked(of, m.Tool.Tool), Name: m.Name})
		}
	}
	return view, nil
}

// Tool returns a tool of a set by its name in the set, or by the name that model providers get for
// it ([format.NameAs]). The error is of KindNotFound, or one of [Sets.View].
func (s Sets) Tool(tenant schema.TenantID, set, name string) (Tool, error) {
	view, err := s.View(tenant, set)
	if err != nil {
		return Tool{}, err
	}
	for i := range view.Tools {
		t := &view.Tools[i]
		if t.Name == name || format.NameAs(t.Name, string(t.Server), t.Tool.Name) == name {
			return t.Tool, nil
		}
	}
	return Tool{}, noSetTool(set, name)
}

// Has reports whether the set that the tenant knows by this name has a tool that the tenant sees.
// It returns false if the set does not exist or cannot be composed. It runs for each call of a
// principal that is limited to sets, so it only looks up composed sets.
func (s Sets) Has(tenant schema.TenantID, set string, server schema.ServerID, tool string) bool {
	now := s.composed()
	made, owner := now.find(tenant, set)
	if !made.has(toolName{server, tool}) {
		return false
	}
	return owner == tenant || tenant.Is(schema.DefaultTenant) || now.installation(tenant, set) != nil
}

// everyToolLocked returns all tools, sorted by server and name.
func (s Sets) everyToolLocked() []*toolset.Tool {
	var all []*toolset.Tool
	for _, of := range s.c.servers {
		if of.defs == nil {
			continue
		}
		for _, t := range of.defs.order {
			all = append(all, &toolset.Tool{Tool: t, RiskLevel: of.view.HighestRisk})
		}
	}
	slices.SortFunc(all, func(a, b *toolset.Tool) int {
		return cmp.Or(strings.Compare(string(a.Server), string(b.Server)), strings.Compare(a.Name, b.Name))
	})
	return all
}

// membersLocked returns the tools of a set of the installation, including those that have no name
// in it. It returns nil if set is empty or the set cannot be composed.
func (s Sets) membersLocked(set string) map[toolName]struct{} {
	if set == "" {
		return nil
	}
	made := s.composedLocked().set(schema.DefaultTenant, set)
	if made == nil || made.err != nil {
		s.c.log.Error("a set that disables tools cannot be used; all tools that match the rest of the switch are disabled", "set", set)
		return nil
	}
	members := maps.Clone(made.members)
	for _, clash := range made.LeftOut {
		for _, t := range clash.Tools {
			members[toolName{t.Server, t.Name}] = struct{}{}
		}
	}
	return members
}
