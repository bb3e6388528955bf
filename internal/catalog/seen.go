package catalog

import (
	"context"
	"slices"
	"sync"

	"github.com/callyard/callyard/pkg/schema"
)

// Judge says what is shown to one principal: what it may use. It is safe for concurrent use.
type Judge interface {
	// Tool reports whether the tool is shown, which need not exist.
	Tool(server schema.ServerID, tool string) bool
	// Resources and Prompts report whether those of the server are shown.
	Resources(server schema.ServerID) bool
	Prompts(server schema.ServerID) bool
	// Server reports whether its tenant sees the server, whether or not it exists.
	Server(server schema.ServerID) bool
	// Whole reports whether its tenant and its credential leave nothing out, so that what
	// tells of all servers together is shown: patterns, and counts of calls.
	Whole() bool
	// Key is the same for two judges that judge alike.
	Key() string
}

// Seen is the catalog as one principal sees it: what is not shown to it is answered like what
// is not there. It is safe for concurrent use.
type Seen struct {
	c      *Catalog
	tenant schema.TenantID // what names of sets mean
	judge  Judge           // nil: everything is shown
	of     *shown
}

// SeenBy returns the catalog as the principal of the judge sees it, who is of the tenant; nil:
// everything is shown but for the sets of other tenants, and nothing is asked.
func SeenBy(c *Catalog, tenant schema.TenantID, j Judge) *Seen {
	s := &Seen{c: c, tenant: tenant.OrDefault(), judge: j}
	if j != nil {
		s.of = c.seen.get(c, j)
	}
	return s
}

// shown is what a judge said of everything that there was at one time. It is never changed.
type shown struct {
	at      uint64 // of the catalog's changes
	key     string
	servers map[schema.ServerID]*shownServer
}

// shownServer is what is shown of a server. One of which nothing is shown has none.
type shownServer struct {
	tools              map[string]struct{}
	resources, prompts bool
}

// mostSeen bounds the judgements that are kept; beyond it all are made again.
const mostSeen = 256

// seen keeps judgements, since asking about thousands of tools takes longer than a list.
type seen struct {
	mu sync.RWMutex
	by map[string]*shown
}

func (k *seen) get(c *Catalog, j Judge) *shown {
	key, now := j.Key(), c.changes.count.Load()
	k.mu.RLock()
	s := k.by[key]
	k.mu.RUnlock()
	if s != nil && s.at == now {
		return s
	}
	s = &shown{at: now, key: key, servers: make(map[schema.ServerID]*shownServer)}
	for id, tools := range toolNames(c) { // not under the lock of the catalog: a judge may ask it
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
	if k.by == nil || len(k.by) >= mostSeen {
		k.by = make(map[string]*shown)
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

// All reports whether everything is shown.
func (s *Seen) All() bool { return s.judge == nil }

// State names what is shown: two with the same state show the same. It is 0, "" where
// everything is shown.
func (s *Seen) State() (at uint64, key string) {
	if s.of == nil {
		return 0, ""
	}
	return s.of.at, s.of.key
}

// Whole reports whether what tells of all servers together is shown; see [Judge].
func (s *Seen) Whole() bool { return s.judge == nil || s.judge.Whole() }

// Has reports whether something of the server is shown.
func (s *Seen) Has(id schema.ServerID) bool { return s.of == nil || s.of.servers[id] != nil }

// HasTool reports whether the tool is shown, if there is one.
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

// HasResources reports whether the resources of the server are shown.
func (s *Seen) HasResources(id schema.ServerID) bool {
	return s.of == nil || s.of.servers[id] != nil && s.of.servers[id].resources
}

// HasPrompts reports whether the prompts of the server are shown.
func (s *Seen) HasPrompts(id schema.ServerID) bool {
	return s.of == nil || s.of.servers[id] != nil && s.of.servers[id].prompts
}

// Would reports whether the tool would be shown if there were one; of "" something of the
// server. It is for what is not there any more.
func (s *Seen) Would(id schema.ServerID, tool string) bool {
	switch {
	case s.judge == nil:
		return true
	case tool == "":
		return s.Has(id) || s.judge.Resources(id) || s.judge.Prompts(id)
	}
	return s.judge.Tool(id, tool)
}

// unknown is the error for a server that is not shown.
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

// Definitions is [Catalog.Definitions], without what is not shown.
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

// Pins is [Catalog.Pins], without the tools that are not shown.
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

// Search is [Catalog.Search]. What is not shown is neither found nor counted.
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
