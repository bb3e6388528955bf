package catalog

import (
	"context"
	"slices"

	"github.com/callyard/callyard/internal/toolset"
	"github.com/callyard/callyard/pkg/schema"
)

// Seen is the catalog as a tenant sees it. A server that the tenant does not see is answered
// like one that does not exist, in the same words. It is safe for concurrent use.
type Seen struct {
	c      *Catalog
	tenant schema.TenantID
}

// SeenBy returns the catalog as the tenant sees it; see [Finding].Sees.
func SeenBy(c *Catalog, tenant schema.TenantID) Seen { return Seen{c, tenant} }

// Apart reports whether tenants see different servers at all.
func Apart(c *Catalog) bool { return c.finding.Sees != nil }

// Sees reports whether the tenant sees the server, whether or not it exists.
func (s Seen) Sees(id schema.ServerID) bool {
	return s.c.finding.Sees == nil || s.c.finding.Sees(s.tenant, id)
}

// All reports whether the tenant sees every server, so that what tells of the fleet as a whole
// is for it.
func (s Seen) All() bool {
	return s.c.finding.Sees == nil || s.c.finding.Apart != nil && !s.c.finding.Apart(s.tenant)
}

// Hidden returns the error for a server that does not exist where the tenant does not see
// it, else nil.
func (s Seen) Hidden(id schema.ServerID) error {
	if s.Sees(id) {
		return nil
	}
	s.c.mu.RLock()
	defer s.c.mu.RUnlock()
	return s.c.noServer(id)
}

// Servers is [Catalog.Servers].
func (s Seen) Servers() []Server {
	return slices.DeleteFunc(s.c.Servers(), func(of Server) bool { return !s.Sees(of.ID) })
}

// Server is [Catalog.Server].
func (s Seen) Server(id schema.ServerID) (Server, error) {
	if err := s.Hidden(id); err != nil {
		return Server{}, err
	}
	return s.c.Server(id)
}

// Definitions is [Catalog.Definitions].
func (s Seen) Definitions(id schema.ServerID) (*schema.Definitions, error) {
	if err := s.Hidden(id); err != nil {
		return nil, err
	}
	return s.c.Definitions(id)
}

// Tools is [Catalog.Tools].
func (s Seen) Tools(id schema.ServerID) ([]Tool, error) {
	if err := s.Hidden(id); err != nil {
		return nil, err
	}
	return s.c.Tools(id)
}

// Tool is [Catalog.Tool].
func (s Seen) Tool(id schema.ServerID, name string) (Tool, error) {
	if err := s.Hidden(id); err != nil {
		return Tool{}, err
	}
	return s.c.Tool(id, name)
}

// Pins is [Catalog.Pins].
func (s Seen) Pins(id schema.ServerID) (Pins, error) {
	if err := s.Hidden(id); err != nil {
		return Pins{}, err
	}
	return s.c.Pins(id)
}

// Search is [Catalog.Search].
func (s Seen) Search(ctx context.Context, q Query) (Found, error) {
	if q.Server != "" {
		if err := s.Hidden(q.Server); err != nil {
			return Found{}, err
		}
	}
	if q.Set != "" {
		if _, err := s.Set(q.Set); err != nil {
			return Found{}, err
		}
	}
	q.sees = s.Sees
	return s.c.Search(ctx, q)
}

// Sets returns the sets that the tenant sees, as [Sets.List]: those of which it sees the
// server of every tool. A set that has no tool now is shown to nobody who is kept from a
// server, because its definition may name one.
func (s Seen) Sets() []Set {
	return slices.DeleteFunc(s.c.Sets().List(), func(set Set) bool { return !s.seesSet(set.Name) })
}

func (s Seen) seesSet(name string) bool {
	if s.All() {
		return true
	}
	s.c.mu.RLock()
	defer s.c.mu.RUnlock()
	made, err := s.c.Sets().composeLocked(name)
	return err == nil && len(made.Members) > 0 && !slices.ContainsFunc(made.Members, func(m toolset.Member) bool { return !s.Sees(m.Tool.Server) })
}

// Set is [Sets.Get].
func (s Seen) Set(name string) (Set, error) {
	if !s.seesSet(name) {
		return Set{}, noSet(name)
	}
	return s.c.Sets().Get(name)
}

// SetView is [Sets.View].
func (s Seen) SetView(name string) (*SetView, error) {
	if !s.seesSet(name) {
		return nil, noSet(name)
	}
	return s.c.Sets().View(name)
}

// SetTool is [Sets.Tool].
func (s Seen) SetTool(set, name string) (Tool, error) {
	if !s.seesSet(set) {
		return Tool{}, noSet(set)
	}
	return s.c.Sets().Tool(set, name)
}

// Changed reports whether a change is of what the tenant sees. A set that is gone is told
// only to those who see every server, for nobody can say any more what it had.
func (s Seen) Changed(change *FleetChange) bool {
	if change.Set != "" {
		return s.seesSet(change.Set)
	}
	return s.Sees(change.Server)
}
