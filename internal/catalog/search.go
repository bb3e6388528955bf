package catalog

import (
	"context"
	"slices"
	"strings"

	"github.com/callyard/callyard/internal/embedding"
	"github.com/callyard/callyard/internal/search"
	"github.com/callyard/callyard/pkg/schema"
)

// Finding configures searches: their inputs in addition to the definitions of tools, and the
// servers that each tenant sees.
type Finding struct {
	Labels  LabelsFunc       // nil if there are no labels
	Vectors *embedding.Store // if nil, searches use words only
	// Sees reports whether a tenant sees a server. If nil, every tenant sees all. Apart
	// reports whether some servers may be hidden from the tenant. Set both or neither. See
	// [SeenBy].
	Sees  func(tenant schema.TenantID, server schema.ServerID) bool
	Apart func(tenant schema.TenantID) bool
}

// Query is a search for tools.
type Query struct {
	// Text describes the wanted tools in words.
	Text string
	// Server and Set restrict the search. If empty, the search covers every server and is not
	// limited to a set.
	Server schema.ServerID
	Set    string
	// Most limits the number of tools in the result. 0 means no limit.
	Most int
	// Offline includes tools that no worker can run now.
	Offline bool

	tenant schema.TenantID // resolves names of sets
	seen   *Seen           // if nil, everything is visible
}

// Found is the result of a [Query].
type Found struct {
	// Tools lists the matching tools, best match first, with their names in the set.
	Tools []FoundTool
	// Callable is the number of tools that were searched.
	Callable int
	// Unknown lists the servers that were not searched because their tools are not known.
	Unknown []string
	// Unmatched lists the words of the query that no tool contains.
	Unmatched []string
	// Hybrid reports that the tools are ranked by vectors as well as by words. Words is the
	// reason why they are not although vectors are configured.
	Hybrid bool
	Words  string
}

// FoundTool is a tool that matches a query.
type FoundTool struct {
	Tool
	Score     float64
	NameInSet string // "" if no set was searched
}

// Search returns the callable tools that match a query. Tools that are switched off, quarantined or
// not in the set are neither returned nor counted. The error is of KindNotFound for an unknown
// server or set. The cost depends on the number of matching tools, hardly on the total.
func (c *Catalog) Search(ctx context.Context, q Query) (f Found, err error) {
	var names map[toolName]string
	if q.Set != "" {
		view, err := c.Sets().View(q.tenant, q.Set)
		if err != nil {
			return f, err
		}
		names = make(map[toolName]string, len(view.Tools))
		for i := range view.Tools {
			t := &view.Tools[i]
			names[toolName{t.Server, t.Tool.Name}] = t.Name
		}
	}
	if q.Server != "" {
		if _, err := c.Server(q.Server); err != nil {
			return f, err
		}
	}
	meaning := c.finding.meaning(ctx, q.Text, &f) // outside the lock, because it calls an endpoint
	c.mu.RLock()
	defer c.mu.RUnlock()
	in, of := partsLocked(c, &q, names, &f)
	var r search.Result
	if f.Hybrid {
		r = search.FindWith(in, q.Text, meaning, q.Most)
	} else {
		r = search.Find(in, q.Text, q.Most)
	}
	f.Unmatched = r.Unmatched
	f.Tools = make([]FoundTool, len(r.Hits))
	for i, h := range r.Hits {
		t := in[h.Part].Tool(h.At)
		f.Tools[i] = FoundTool{Tool: c.toolLocked(of[h.Part], t), Score: h.Score, NameInSet: names[toolName{t.Server, t.Name}]}
	}
	return f, nil
}

// meaning returns the vectors of a query and records in f whether they are known.
func (by *Finding) meaning(ctx context.Context, text string, f *Found) (m search.Meaning) {
	if by.Vectors == nil {
		return m
	}
	m, err := by.Vectors.Query(ctx, text)
	if err != nil {
		f.Words = err.Error()
		return m
	}
	f.Hybrid = true
	return m
}

// embed requests vectors for all current tools.
func embed(c *Catalog) {
	if c.finding.Vectors == nil {
		return
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	var all []*schema.Tool
	for _, s := range c.servers {
		if s.defs != nil {
			all = append(all, s.defs.order...)
		}
	}
	c.finding.Vectors.Want(all)
}

// partsLocked returns the parts to search, sorted by server id, and their servers. The caller holds
// c.mu.
func partsLocked(c *Catalog, q *Query, names map[toolName]string, f *Found) (in []search.Part, of []*server) {
	off := c.standing.Load()
	for id, s := range c.servers {
		switch {
		case q.Server != "" && id != q.Server, q.seen != nil && !q.seen.Has(id):
		case s.defs == nil:
			f.Unknown = append(f.Unknown, string(id))
		case s.view.Offline != "" && !q.Offline:
		case s.pins.of("") == unrecorded:
			f.Unknown = append(f.Unknown, string(id))
		default:
			of = append(of, s)
		}
	}
	slices.Sort(f.Unknown)
	slices.SortFunc(of, func(a, b *server) int { return strings.Compare(string(a.view.ID), string(b.view.ID)) })
	for _, s := range of {
		id := s.view.ID
		hidden := s.pins.leaveOut(off.namesOff(id, s.defs.order))
		if q.Set != "" || q.seen != nil {
			hidden = slices.Clip(hidden)
			for _, t := range s.defs.order {
				_, ok := names[toolName{id, t.Name}]
				if q.Set != "" && !ok || q.seen != nil && !q.seen.HasTool(id, t.Name) {
					hidden = append(hidden, t.Name)
				}
			}
		}
		part := s.defs.found.Without(hidden)
		f.Callable += part.Left()
		in = append(in, part)
	}
	return in, of
}
