package tools

import (
	"strings"
	"sync"

	"github.com/callyard/callyard/internal/catalog"
	"github.com/callyard/callyard/internal/format"
	"github.com/callyard/callyard/pkg/schema"
)

// names finds the tools that the calls of one request mean. It is safe for concurrent use.
type names struct {
	catalog *catalog.Seen // what is not shown to the caller has no name
	set     string        // whose tools and names are meant, "" for those of all servers
	own     []string      // tools that the caller runs itself
	// whole is the catalog as the tenant of the caller sees it, and may what the credential lets
	// it call. nil: what is denied has no name.
	whole *catalog.Seen
	may   func(schema.ServerID, string) error

	once   sync.Once
	folded format.Folding[meant]
}

// meant is a tool that a name can mean.
type meant struct {
	own    string // the caller's, "" for a tool of a server
	name   string // in the set, or for all providers
	server schema.ServerID
	tool   string
}

// shown is what the tool is called in errors.
func (m *meant) shown() string {
	if m.own != "" {
		return m.own
	}
	return m.name
}

// find returns the tool of a server that a model means by the name, or the name of the
// caller's own one. A name that nothing has is looked up again without regard to letter case
// and separators, and counts where it can mean one thing only. ambiguous says that the error
// is about a name with several meanings.
func (n *names) find(name string) (tool catalog.Tool, own string, ambiguous bool, err error) {
	for _, o := range n.own {
		if o == name {
			return tool, o, false, nil
		}
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
			candidates[i] = found[i].shown()
		}
		return tool, "", true, format.Ambiguous(name, candidates)
	}
}

// denied returns the tool of that name which is not shown because the policy denies all calls of
// it: the gate says why, in the words of the policy.
func (n *names) denied(name string) (catalog.Tool, bool) {
	if n.whole == nil {
		return catalog.Tool{}, false
	}
	tool, _, err := (&names{catalog: n.whole, set: n.set}).exact(name)
	return tool, err == nil && n.may(tool.Server, tool.Name) == nil
}

// exact returns the tool that the name stands for as it is written.
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
	// A server that is not ready is said to be that, and not to have no such tool.
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

// fold adds every name that can be meant. Tools that are switched off are among them: a call
// of one is refused for that, and never runs another one.
func (n *names) fold() {
	for _, own := range n.own {
		n.folded.Add(own, meant{own: own})
	}
	if n.set != "" {
		view, err := n.catalog.SetView(n.set)
		if err != nil {
			return // as the name as it is written was answered
		}
		for i := range view.Tools {
			t := &view.Tools[i]
			n.folded.Add(t.Name, meant{name: t.Name, server: t.Server, tool: t.Tool.Name})
		}
		return
	}
	d := n.directory()
	for _, server := range d.Servers() {
		for _, tool := range d.Tools(server) {
			m := meant{name: format.Name(server, tool), server: schema.ServerID(server), tool: tool}
			n.folded.Add(m.name, m)
			n.folded.Add(server+"__"+tool, m)
			n.folded.Add(tool, m)
		}
	}
}

// Find returns the tool that a model means by the name, of all that there are.
func Find(c *catalog.Catalog, name string) (catalog.Tool, error) {
	tool, _, _, err := (&names{catalog: catalog.SeenBy(c, schema.DefaultTenant, nil)}).find(name)
	return tool, err
}
