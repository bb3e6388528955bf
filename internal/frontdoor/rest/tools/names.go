package tools

import (
	"slices"
	"strings"
	"sync"

	"github.com/callyard/callyard/internal/catalog"
	"github.com/callyard/callyard/internal/format"
	"github.com/callyard/callyard/pkg/schema"
)

// names resolves the tool names in the calls of one request. It is safe for concurrent use.
type names struct {
	catalog *catalog.Seen // tools hidden from the caller cannot be named
	set     string        // resolve names in this set; "" means all servers
	own     []string      // tools that the caller runs itself
	// whole is the catalog as the caller's tenant sees it. may reports what the credential may
	// call. If whole is nil, denied tools cannot be named.
	whole *catalog.Seen
	may   func(schema.ServerID, string) error

	once   sync.Once
	folded format.Folding[namedTool]
}

// namedTool is a tool that a name can refer to.
type namedTool struct {
	own    string // the caller's own tool; "" for a tool of a server
	name   string // in the set, or for all providers
	server schema.ServerID
	tool   string
}

// displayName returns the name of the tool for errors.
func (m *namedTool) displayName() string {
	if m.own != "" {
		return m.own
	}
	return m.name
}

// find resolves the name that a model uses: it returns the tool of a server, or the name of one of
// the caller's own tools. If no tool has the name, it is matched without regard to letter case and
// separators, which must yield exactly one tool. ambiguous is true if the error is about a name with
// several matches.
func (n *names) find(name string) (tool catalog.Tool, own string, ambiguous bool, err error) {
	if slices.Contains(n.own, name) {
		return tool, name, false, nil
	}
	tool, ambiguous, err = n.exact(name)
	if err == nil || ambiguous || schema.KindOf(err) != schema.KindNotFound {
		return tool, "", ambiguous, err
	}
	if denied, ok := n.denied(name); ok {
		return denied, "", false, nil
	}
	n.once.Do(n.fold)
	switch found := n.folded.Find(name); len(found) {
	case 0:
		return tool, "", false, err
	case 1:
		m := &found[0]
		switch {
		case m.own != "":
			return tool, m.own, false, nil
		case n.set != "":
			tool, err = n.catalog.SetTool(n.set, m.name)
		default:
			tool, err = n.catalog.Tool(m.server, m.tool)
		}
		return tool, "", false, err
	default:
		candidates := make([]string, len(found))
		for i := range found {
			candidates[i] = found[i].displayName()
		}
		return tool, "", true, format.Ambiguous(name, candidates)
	}
}

// denied returns the tool with that name that is hidden because the policy denies all calls of it.
// The gate then returns the reason of the policy.
func (n *names) denied(name string) (catalog.Tool, bool) {
	if n.whole == nil {
		return catalog.Tool{}, false
	}
	tool, _, err := (&names{catalog: n.whole, set: n.set}).exact(name)
	return tool, err == nil && n.may(tool.Server, tool.Name) == nil
}

// exact returns the tool with exactly this name.
func (n *names) exact(name string) (tool catalog.Tool, ambiguous bool, err error) {
	if n.set != "" {
		tool, err = n.catalog.SetTool(n.set, name)
		return tool, false, err
	}
	c := n.catalog
	found := n.directory().Candidates(name)
	switch len(found) {
	case 0:
	case 1:
		tool, err = c.Tool(schema.ServerID(found[0].Server), found[0].Tool)
		return tool, false, err
	default:
		candidates := make([]string, len(found))
		for i, ref := range found {
			candidates[i] = format.Name(ref.Server, ref.Tool)
		}
		return tool, true, format.Ambiguous(name, candidates)
	}
	// If the server is not ready, report that rather than an unknown tool.
	if server, of, ok := strings.Cut(name, "__"); ok {
		if _, why := c.Tool(schema.ServerID(server), of); schema.KindOf(why) == schema.KindUnavailable {
			return tool, false, why
		}
	}
	return tool, false, format.Unknown(name)
}

func (n *names) directory() format.Directory {
	c := n.catalog
	return format.Directory{
		Servers: func() []string {
			servers := c.Servers()
			ids := make([]string, len(servers))
			for i := range servers {
				ids[i] = string(servers[i].ID)
			}
			return ids
		},
		Tools: func(server string) []string {
			tools, err := c.Tools(schema.ServerID(server))
			if err != nil {
				return nil
			}
			names := make([]string, len(tools))
			for i := range tools {
				names[i] = tools[i].Name
			}
			return names
		},
		Has: func(server, tool string) bool {
			_, err := c.Tool(schema.ServerID(server), tool)
			return err == nil
		},
	}
}

// fold adds every name that a model can use. Disabled tools are included, so that a call of one is
// refused for that reason and never runs another tool.
func (n *names) fold() {
	for _, own := range n.own {
		n.folded.Add(own, namedTool{own: own})
	}
	if n.set != "" {
		view, err := n.catalog.SetView(n.set)
		if err != nil {
			return // exact has already returned this error
		}
		for i := range view.Tools {
			t := &view.Tools[i]
			n.folded.Add(t.Name, namedTool{name: t.Name, server: t.Server, tool: t.Tool.Name})
		}
		return
	}
	d := n.directory()
	for _, server := range d.Servers() {
		for _, tool := range d.Tools(server) {
			m := namedTool{name: format.Name(server, tool), server: schema.ServerID(server), tool: tool}
			n.folded.Add(m.name, m)
			n.folded.Add(server+"__"+tool, m)
			n.folded.Add(tool, m)
		}
	}
}
