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

// composed is what sets have of the tools that there were at one time. It is dropped with each
// change of the fleet or of a set, and each set is composed where it is used first.
//
// The sets of a tenant are composed under a lock of their own and without that of the catalog: many
// and large ones take time, which is then that of their tenant.
type composed struct {
	k       *sets
	tenants Tenants
	tools   []*toolset.Tool // by server and name
	log     *slog.Logger

	mu sync.Mutex
	of map[schema.TenantID]*composedOf
}

// composedOf are the sets that one tenant owns.
type composedOf struct {
	tools []*toolset.Tool // that the tenant sees
	all   toolset.All
	outer toolset.Outer

	mu   sync.Mutex
	made map[string]*composition
}

// composition is a set that was composed, or why it cannot be.
type composition struct {
	*toolset.Composition
	members map[toolName]struct{}
	servers []schema.ServerID // of its tools, each once
	err     error
}

// has reports whether a tool is among those that have a name in the set; nil has none.
func (m *composition) has(tool toolName) bool {
	if m == nil || m.err != nil {
		return false
	}
	_, ok := m.members[tool]
	return ok
}

// composed returns what sets have now.
func (s Sets) composed() *composed {
	if now := s.c.sets.now.Load(); now != nil {
		return now
	}
	s.c.mu.RLock()
	defer s.c.mu.RUnlock()
	return s.composedLocked()
}

// composedLocked is composed where c.mu is held.
func (s Sets) composedLocked() *composed {
	k := &s.c.sets
	k.mu.Lock() // what changes is stored before it is forgotten, so nothing older than the last change is kept
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
			if json.Unmarshal(row.Definition, &set) == nil { // what a newer version wrote may not be readable
				of.all[row.Name] = &set
			}
		}
	}
	if tenant.Is(schema.DefaultTenant) {
		maps.Copy(of.all, p.k.configured) // k.mu is held: those of this tenant are read first
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

// definitions returns the sets that a tenant owns by name. Whoever asks may change the map.
func (p *composed) definitions(tenant schema.TenantID) toolset.All {
	return maps.Clone(p.by(tenant).all)
}

// set returns a set that a tenant owns, nil where it owns none of that name.
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

// installation returns a set of the installation that has no tool of a server which the tenant
// does not see, nil where there is none.
func (p *composed) installation(tenant schema.TenantID, name string) *composition {
	made := p.set(schema.DefaultTenant, name)
	if made == nil || made.err != nil || slices.ContainsFunc(made.servers, func(id schema.ServerID) bool { return !p.tenants.Sees(tenant, id) }) {
		return nil
	}
	return made
}

// sees returns a set of the installation that the tenant sees, nil where it sees none of that
// name. One that has no tools is not seen.
func (p *composed) sees(tenant schema.TenantID, name string) *toolset.Composition {
	if made := p.installation(tenant, name); made != nil && len(made.Members) > 0 {
		return made.Composition
	}
	return nil
}

// find returns what a name means to a tenant, and whose it is: its own set, else one of the
// installation, whether or not the tenant sees that; nil where there is neither.
func (p *composed) find(tenant schema.TenantID, name string) (made *composition, owner schema.TenantID) {
	if !tenant.Is(schema.DefaultTenant) {
		if own := p.set(tenant, name); own != nil {
			return own, tenant
		}
	}
	return p.set(schema.DefaultTenant, name), schema.DefaultTenant
}

// View returns what a set has now that a name means to the tenant: its own one, else the
// installation's, whether or not the tenant sees that. The error is of KindNotFound, or of
// KindConflict for a set that cannot be composed any more, since a set that it names is gone.
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
		if of := s.c.servers[m.Tool.Server]; of != nil { // it may have been removed since
			view.Tools = append(view.Tools, SetTool{Tool: s.c.toolLocked(of, m.Tool.Tool), Name: m.Name})
		}
	}
	return view, nil
}

// Tool returns the tool of a set by its name there, or by what model providers are told
// instead ([format.NameAs]). The error is of KindNotFound, or as [Sets.View].
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

// Has reports whether a set has a tool that a name means to the tenant, and that the tenant sees.
// It has none where the set is not there, or cannot be composed. Each call of whoever is limited to
// sets asks; it looks up what was composed.
func (s Sets) Has(tenant schema.TenantID, set string, server schema.ServerID, tool string) bool {
	now := s.composed()
	made, owner := now.find(tenant, set)
	if !made.has(toolName{server, tool}) {
		return false
	}
	return owner == tenant || tenant.Is(schema.DefaultTenant) || now.installation(tenant, set) != nil
}

// everyToolLocked returns all tools by server and name.
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

// membersLocked returns the tools of a set of the installation, also those that have no name in
// it; nil where no set is named, or where it cannot be composed.
func (s Sets) membersLocked(set string) map[toolName]struct{} {
	if set == "" {
		return nil
	}
	made := s.composedLocked().set(schema.DefaultTenant, set)
	if made == nil || made.err != nil {
		s.c.log.Error("a set by which tools are disabled cannot be used; all tools that fit the rest of the switch are disabled", "set", set)
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
