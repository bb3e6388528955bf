package catalog

import (
	"context"
	"slices"
	"strings"

	"github.com/callyard/callyard/internal/embedding"
	"github.com/callyard/callyard/internal/search"
	"github.com/callyard/callyard/pkg/schema"
)

// Finding is what searches go by in addition to the definitions of tools, and who finds
// which servers at all.
type Finding struct {
	Labels  LabelsFunc       // nil: there are none
	Vectors *embedding.Store // nil: searches go by words alone
	// Sees reports whether a tenant sees a server; nil: every tenant sees all. Apart reports
	// whether the tenant may be kept from some; both are set or neither. See [SeenBy].
	Sees  func(tenant schema.TenantID, server schema.ServerID) bool
	Apart func(tenant schema.TenantID) bool
}

// Query is a search for tools.
type Query struct {
	// Text says in words what is wanted.
	Text string
	// Server and Set restrict the search; "" is every server, and no set.
	Server schema.ServerID
	Set    string
	// Most is the most tools to return, 0 for all.
	Most int
	// Offline says that tools which no worker can run now count as well.
	Offline bool

	tenant schema.TenantID // whose names of sets are meant
	seen   *Seen           // nil: everything is shown
}

// Found is the answer to a [Query].
type Found struct {
	// Tools are the tools that fit, the best first, with their names in the set.
	Tools []FoundTool
	// Callable is how many tools were searched.
	Callable int
	// Unknown are the servers whose tools are not known and thus not searched.
	Unknown []string
	// Unmatched are the words of the query that no tool has.
	Unmatched []string
	// Hybrid says that the tools are ranked by vectors as well as by words, and Words why
	// they are not although vectors are configured.
	Hybrid bool
	Words  string
}

// FoundTool is a tool that fits a query.
type FoundTool struct {
	Tool
	Score     float64
	NameInSet string // "" where no set was searched
}

// Search returns the callable tools that fit a query; none where no tool fits. What is switched
// off, is in quarantine or is not of the set is neither found nor counted. The error is of
// KindNotFound for a server or a set that is not there. The work grows with the number of tools
// that are found, hardly with those that are not.
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
	meaning := c.finding.meaning(ctx, q.Text, &f) // outside of the lock: it asks an endpoint
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

// meaning returns what a query means, and says in f whether that is known.
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

// embed has the vectors made of the tools that there are.
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

// partsLocked returns what is searched, by the id of the server, and the servers themselves; c.mu
// is held.
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
