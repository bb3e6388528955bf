package mcp

import (
	"maps"
	"slices"

	"github.com/callyard/callyard/internal/catalog"
	"github.com/callyard/callyard/pkg/schema"
)

// A principal that may not see everything gets a part of the view of a mount. All entries keep
// the names of the whole view, so that a name means the same tool for every caller.

// maxParts limits the cached parts. When it is exceeded, all are rebuilt.
const maxParts = 256

// partKey identifies a part by its mount and the state of the visible catalog; see
// [catalog.Seen.State].
type partKey struct {
	at    place
	shown string
}

// part is a view without the hidden entries, and the versions that it was built from.
type part struct {
	*view
	whole uint64 // value of lists.changes
	shown uint64 // version of the visible catalog
}

// seen returns the entries of the mount that the caller may see.
func (ls *lists) seen(x *exchange) *view { return ls.part(ls.place(x), x.visibleCatalog()) }

func (ls *lists) part(at place, shown *catalog.Seen) *view {
	v := ls.view(at)
	if shown.All() {
		return v
	}
	since, of := shown.State()
	key := partKey{at, of}
	ls.mu.RLock()
	p := ls.parts[key]
	ls.mu.RUnlock()
	if p != nil && p.whole == v.at && p.shown == since {
		return p.view
	}
	p = &part{v.without(shown), v.at, since}
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if ls.parts == nil || len(ls.parts) >= maxParts {
		ls.parts = make(map[partKey]*part)
	}
	ls.parts[key] = p
	return p.view
}

// without returns the view without the entries that are hidden.
func (v *view) without(shown *catalog.Seen) *view {
	some := *v // headers and taskOnly are only read for tools that were found
	some.marks = marks{}
	entries := func(of []item, sum *uint64, has func(target) bool) (left []item) {
		for i := range of {
			if has(of[i].of) {
				left = append(left, of[i])
				*sum = mix(*sum, of[i].raw)
			}
		}
		return left
	}
	resources := func(to target) bool { return shown.HasResources(to.server) }
	prompts := func(to target) bool { return shown.HasPrompts(to.server) }
	tools := func(to target) bool { return shown.HasTool(to.server, to.name) }
	some.encode(items{
		tools:     entries(v.items.tools, &some.marks.tools, tools),
		resources: entries(v.items.resources, &some.marks.resources, resources),
		templates: entries(v.items.templates, &some.marks.resources, resources),
		prompts:   entries(v.items.prompts, &some.marks.prompts, prompts),
	})
	some.toolOf, some.promptOf = maps.Clone(v.toolOf), maps.Clone(v.promptOf)
	maps.DeleteFunc(some.toolOf, func(_ string, to target) bool { return !tools(to) })
	maps.DeleteFunc(some.promptOf, func(_ string, to target) bool { return !prompts(to) })
	hidden := func(id schema.ServerID) bool { return !shown.HasResources(id) }
	some.serversOf, some.templatesOf = withoutHidden(v.serversOf, hidden), withoutHidden(v.templatesOf, hidden)
	some.patterns = slices.DeleteFunc(slices.Clone(v.patterns), func(p pattern) bool { return hidden(p.server) })
	some.servers = slices.DeleteFunc(slices.Clone(v.servers), func(p *serverLists) bool { return hidden(p.server) })
	return &some
}

// withoutHidden returns the map without the hidden servers.
func withoutHidden(of map[string][]schema.ServerID, hidden func(schema.ServerID) bool) map[string][]schema.ServerID {
	left := make(map[string][]schema.ServerID, len(of))
	for uri, servers := range of {
		if some := slices.DeleteFunc(slices.Clone(servers), hidden); len(some) > 0 {
			left[uri] = some
		}
	}
	return left
}
