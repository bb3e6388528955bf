package mcp

import (
	"maps"
	"slices"

	"github.com/callyard/callyard/internal/catalog"
	"github.com/callyard/callyard/pkg/schema"
)

// A principal that is not shown everything gets a part of the view of a mount, in which all
// entries have the names that they have in the whole: a call by one means the same tool for
// everybody.

// maxParts bounds the parts that are kept; beyond it all are made again.
const maxParts = 256

// partKey is a mount and the state of what is shown there; see [catalog.Seen.State].
type partKey struct {
	at    place
	shown string
}

// part is a view without what is not shown, and what it was made of.
type part struct {
	*view
	whole uint64 // of lists.changes
	shown uint64 // of the catalog
}

// seen returns what the mount of a request offers to whoever asks.
func (ls *lists) seen(x *exchange) *view { return ls.part(ls.place(x), x.shown()) }

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

// without returns the view without what is not shown.
func (v *view) without(shown *catalog.Seen) *view {
	some := *v // headers and taskOnly are asked for tools that were found
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
	some.serversOf, some.templatesOf = leave(v.serversOf, hidden), leave(v.templatesOf, hidden)
	some.patterns = slices.DeleteFunc(slices.Clone(v.patterns), func(p pattern) bool { return hidden(p.server) })
	some.servers = slices.DeleteFunc(slices.Clone(v.servers), func(p *serverLists) bool { return hidden(p.server) })
	return &some
}

// leave returns the map without the servers that are hidden.
func leave(of map[string][]schema.ServerID, hidden func(schema.ServerID) bool) map[string][]schema.ServerID {
	left := make(map[string][]schema.ServerID, len(of))
	for uri, servers := range of {
		if some := slices.DeleteFunc(slices.Clone(servers), hidden); len(some) > 0 {
			left[uri] = some
		}
	}
	return left
}
