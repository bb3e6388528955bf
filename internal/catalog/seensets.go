package catalog

import (
	"slices"
	"strings"

	"github.com/callyard/callyard/pkg/schema"
)

// SetView is [Sets.View] without the tools that are not visible. A set does not exist for the
// principal if none of its tools are visible, or if it has a tool of a server that the tenant does
// not see. Its selectors are returned only if all its tools are visible, and its exclusions only if
// [Seen.SeesEverything]. A principal that sees everything that its tenant sees gets all details of the sets
// that the tenant owns, even of one without tools, since otherwise no principal could change it.
func (s *Seen) SetView(name string) (*SetView, error) {
	view, err := s.c.Sets().View(s.tenant, name)
	if s.of == nil {
		return view, err
	}
	if view == nil {
		return nil, noSet(name)
	}
	if s.owns(&view.Set) {
		return view, err
	}
	if err != nil && !s.SeesEverything() || err == nil && slices.ContainsFunc(view.Tools, func(t SetTool) bool { return !s.judge.Server(t.Server) }) {
		return nil, noSet(name)
	}
	if err != nil {
		return nil, err
	}
	all := len(view.Tools)
	view.Tools = slices.DeleteFunc(view.Tools, func(t SetTool) bool { return !s.HasTool(t.Server, t.Tool.Name) })
	switch {
	case len(view.Tools) == 0:
		return nil, noSet(name)
	case len(view.Tools) < all:
		view.LeftOut, view.Include, view.Exclude = nil, view.Include[:0:0], nil
	case !s.SeesEverything():
		view.LeftOut, view.Exclude = nil, nil
	}
	return view, nil
}

// owns reports whether the tenant owns the set and the principal sees everything that the tenant
// sees.
func (s *Seen) owns(set *Set) bool {
	_, whole := s.judge.(tenantJudge)
	return (s.judge == nil || whole) && set.Tenant.Is(s.tenant) && !s.tenant.Is(schema.DefaultTenant)
}

// SetTool is [Sets.Tool].
func (s *Seen) SetTool(set, name string) (Tool, error) {
	t, err := s.c.Sets().Tool(s.tenant, set, name)
	if s.of == nil {
		return t, err
	}
	if _, err := s.SetView(set); err != nil {
		return Tool{}, err
	}
	if err == nil && !s.HasTool(t.Server, t.Name) {
		return Tool{}, noSetTool(set, name)
	}
	return t, err
}

// KnowsSet returns nil if the name resolves to a set, else the error for a missing set. A set
// without visible tools counts as missing.
func (s *Seen) KnowsSet(name string) error {
	if s.of != nil {
		_, err := s.SetView(name)
		return err
	}
	if made, _ := s.c.Sets().composed().find(s.tenant, name); made == nil {
		return noSet(name)
	}
	return nil
}

// Sets returns the sets that the tenant owns and those of the installation, sorted by name. If both
// have a set of the same name, only the tenant's is included.
func (s *Seen) Sets() []Set {
	all := s.c.Sets().List(schema.OnlyTenant(s.tenant))
	if !s.tenant.Is(schema.DefaultTenant) {
		own := len(all)
		for _, one := range s.c.Sets().List(schema.OnlyTenant(schema.DefaultTenant)) {
			if !slices.ContainsFunc(all[:own], func(mine Set) bool { return mine.Name == one.Name }) {
				all = append(all, one)
			}
		}
		slices.SortFunc(all, func(a, b Set) int { return strings.Compare(a.Name, b.Name) })
	}
	if s.of == nil {
		return all
	}
	part := make([]Set, 0, len(all))
	for _, one := range all {
		if s.owns(&one) {
			part = append(part, one)
		} else if view, err := s.SetView(one.Name); err == nil {
			part = append(part, view.Set)
		}
	}
	return part
}

// Changed reports whether a change concerns a visible part of the catalog, or one that would be
// visible if it still existed. The removal of a set is visible only to principals that see
// everything that their tenant sees, because the tools of a removed set are not known.
func (s *Seen) Changed(change *FleetChange) bool {
	if change.Set == "" {
		return s.Would(change.Server, change.Tool)
	}
	set := Set{Tenant: change.Tenant}
	if !change.Tenant.Is(schema.DefaultTenant) && !change.Tenant.Is(s.tenant) {
		return false
	}
	if s.judge == nil || s.owns(&set) {
		return true
	}
	view, err := s.SetView(change.Set)
	return err == nil && view.Tenant.Is(change.Tenant)
}
