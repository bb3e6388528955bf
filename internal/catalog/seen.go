package catalog

import (
	"context"
	"slices"
	"sync"

	"github.com/callyard/callyard/pkg/schema"
)

// Judge decides which parts of the catalog are visible to one principal, by its permissions. It is
// safe for concurrent use.
type Judge interface {
	// Tool reports whether the tool is visible. The tool need not exist.
	Tool(server schema.ServerID, tool string) bool
	// Resources and Prompts report whether those of the server are visible.
	Resources(server schema.ServerID) bool
	Prompts(server schema.ServerID) bool
	// Server reports whether the principal's tenant sees the server, whether or not it exists.
	Server(server schema.ServerID) bool
	// SeesEverything reports whether neither tenant nor credential hides anything. Only then is
	// information about all servers together visible: patterns, and counts of calls.
	SeesEverything() bool
	// Key is equal for judges that make the same decisions.
	Key() string
}

// Seen is the catalog as one principal sees it. A part that is not visible gets the same answer as
// one that does not exist. It is safe for concurrent use.
type Seen struct {
	c      *Catalog
	tenant schema.TenantID // resolves names of sets
	judge  Judge           // if nil, everything is visible
	of     *visibility
}

// SeenBy returns the catalog as visible to the principal of the judge, who belongs to the tenant.
// If j is nil, everything is visible except the sets of other tenants.
func SeenBy(c *Catalog, tenant schema.TenantID, j Judge) *Seen {
	s := &Seen{c: c, tenant: tenant.OrDefault(), judge: j}
	if j != nil {
		s.of = c.seen.get(c, j)
	}
	return s
}

// visibility holds the decisions of a judge about everything that existed at one point in time. It is
// immutable.
type visibility struct {
	at      uint64 // value of changes.count
	key     string
	servers map[schema.ServerID]*shownServer
}

// shownServer holds the visible parts of a server. A server without visible parts has no entry.
type shownServer struct {
	tools              map[string]struct{}
	resources, prompts bool
}

// maxSeen limits the cached decisions. When it is reached, the cache is cleared.
const maxSeen = 256

// seen caches decisions, because judging thousands of tools takes longer than listing them.
type seen struct {
	mu sync.RWMutex
	by map[string]*visibility
}

func (k *seen) get(c *Catalog, j Judge) *visibility {
	key, now := j.Key(), c.changes.count.Load()
	k.mu.RLock()
	s := k.by[key]
	k.mu.RUnlock()
	if s != nil && s.at == now {
		return s
	}
	s = &visibility{at: now, key: key, servers: make(map[schema.ServerID]*shownServer)}
	for id, tools := range toolNames(c) { // outside the catalog's lock, because a judge may query the catalog
		of := &shownServer{tools: make(map[string]struct{}), resources: j.Resources(id), prompts: j.Prompts(id)}
		for _, tool := range tools {
			if j.Tool(id, tool) {
				of.tools[tool] = struct{}{}
			}
		}
		if of.resources || of.prompts || len(of.tools) > 0 {
			s.servers[id] = of
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.by == nil || len(k.by) >= maxSeen {
		k.by = make(map[string]*visibility)
	}
	k.by[key] = s
	return s
}

// toolNames returns the names of the tools of every server.
func toolNames(c *Catalog) map[schema.ServerID][]string {
	c.mu.RLock()
	defer c.mu.RUnlock()
	all := make(map[schema.ServerID][]string, len(c.servers))
	for id, s := range c.servers {
		all[id] = nil
		if s.defs == nil {
			continue
		}
		for _, t := range s.defs.order {
			all[id] = append(all[id], t.Name)
		}
	}
	return all
}

// All reports whether everything is visible.
func (s *Seen) All() bool { return s.judge == nil }

// State identifies the visible part of the catalog: equal states show the same. It returns 0, "" if
// everything is visible.
func (s *Seen) State() (at uint64, key string) {
	if s.of == nil {
		return 0, ""
	}
	return s.of.at, s.of.key
}

// SeesEverything reports whether information about all servers together is visible; see [Judge].
func (s *Seen) SeesEverything() bool { return s.judge == nil || s.judge.SeesEverything() }

// Has reports whether any part of the server is visible.
func (s *Seen) Has(id schema.ServerID) bool { return s.of == nil || s.of.servers[id] != nil }

// HasTool reports whether the tool is visible, if it exists.
func (s *Seen) HasTool(id schema.ServerID, tool string) bool {
	if s.of == nil {
		return true
	}
	of := s.of.servers[id]
	if of == nil {
		return false
	}
	_, ok := of.tools[tool]
	return ok
}

// HasResources reports whether the resources of the server are visible.
func (s *Seen) HasResources(id schema.ServerID) bool {
	return s.of == nil || s.of.servers[id] != nil && s.of.servers[id].resources
}

// HasPrompts reports whether the prompts of the server are visible.
func (s *Seen) HasPrompts(id schema.ServerID) bool {
	return s.of == nil || s.of.servers[id] != nil && s.of.servers[id].prompts
}

// Would reports whether the tool would be visible if it existed. If tool is empty, it reports
// whether any part of the server would be. Use it for tools and servers that no longer exist.
func (s *Seen) Would(id schema.ServerID, tool string) bool {
	switch {
	case s.judge == nil:
		return true
	case tool == "":
		return s.Has(id) || s.judge.Resources(id) || s.judge.Prompts(id)
	}
	return s.judge.Tool(id, tool)
}

// unknown returns the error for a server that is not visible.
func (s *Seen) unknown(id schema.ServerID) error {
	s.c.mu.RLock()
	defer s.c.mu.RUnlock()
	return s.c.noServer(id)
}

// Servers is [Catalog.Servers].
func (s *Seen) Servers() []Server {
	all := s.c.Servers()
	if s.of != nil {
		all = slices.DeleteFunc(all, func(one Server) bool { return !s.Has(one.ID) })
	}
	return all
}

// Server is [Catalog.Server].
func (s *Seen) Server(id schema.ServerID) (Server, error) {
	if !s.Has(id) {
		return Server{}, s.unknown(id)
	}
	return s.c.Server(id)
}

// Definitions is [Catalog.Definitions] without the parts that are not visible.
func (s *Seen) Definitions(id schema.ServerID) (*schema.Definitions, error) {
	if !s.Has(id) {
		return nil, s.unknown(id)
	}
	defs, err := s.c.Definitions(id)
	if err != nil || s.of == nil {
		return defs, err
	}
	part := *defs
	part.Tools = nil
	tools, err := s.Tools(id)
	if err != nil {
		return nil, err
	}
	for i := range tools {
		part.Tools = append(part.Tools, tools[i].Raw)
	}
	if !s.HasResources(id) {
		part.Resources, part.ResourceTemplates = nil, nil
	}
	if !s.HasPrompts(id) {
		part.Prompts = nil
	}
	return &part, nil
}

// Tools is [Catalog.Tools].
func (s *Seen) Tools(id schema.ServerID) ([]Tool, error) {
	if !s.Has(id) {
		return nil, s.unknown(id)
	}
	tools, err := s.c.Tools(id)
	if s.of != nil {
		tools = slices.DeleteFunc(tools, func(t Tool) bool { return !s.HasTool(id, t.Name) })
	}
	return tools, err
}

// Tool is [Catalog.Tool].
func (s *Seen) Tool(id schema.ServerID, name string) (Tool, error) {
	if !s.Has(id) {
		return Tool{}, s.unknown(id)
	}
	t, err := s.c.Tool(id, name)
	if err == nil && !s.HasTool(id, name) {
		return Tool{}, noTool(id, name)
	}
	return t, err
}

// Pins is [Catalog.Pins] without the tools that are not visible.
func (s *Seen) Pins(id schema.ServerID) (Pins, error) {
	if !s.Has(id) {
		return Pins{}, s.unknown(id)
	}
	pins, err := s.c.Pins(id)
	if s.of != nil {
		pins.Tools = slices.DeleteFunc(slices.Clone(pins.Tools), func(p PinnedTool) bool { return !s.HasTool(id, p.Name) })
	}
	return pins, err
}

// Search is [Catalog.Search] limited to visible tools. Others are neither returned nor counted.
func (s *Seen) Search(ctx context.Context, q Query) (Found, error) {
	if q.Set != "" {
		if _, err := s.SetView(q.Set); err != nil {
			return Found{}, err
		}
	}
	if q.Server != "" && !s.Has(q.Server) {
		return Found{}, s.unknown(q.Server)
	}
	q.tenant = s.tenant
	if s.of != nil {
		q.seen = s
	}
	return s.c.Search(ctx, q)
}
