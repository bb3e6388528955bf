package toolset

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/callyard/callyard/internal/format"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

// Tool is a tool with the properties that selectors read. It is not changed.
type Tool struct {
	*schema.Tool
	// RiskLevel is the configured level of the server, or 0 if it has none.
	RiskLevel int
}

// Member is a tool of a set.
type Member struct {
	Tool *Tool
	// Name is its name in the set, valid in MCP: 1 to 128 letters, digits, "_", "-", ".".
	Name string
}

// Clash is a name that several tools of a set would have.
type Clash struct {
	Name string
	// Tools are the tools left out because of it.
	Tools []*Tool
}

// Composition is a set composed of the current tools. It is not changed.
type Composition struct {
	Members []Member
	// LeftOut are the tools without a name in the set, by the name that they share.
	LeftOut []Clash
}

// Compose returns the tools of a set in its order. tools are all existing tools, sorted by server
// and name, including those of sets that outer returns. The work grows with the number of selectors
// times the number of tools. The error is the reason why the set cannot be composed; see
// [All.Check].
func (all All) Compose(name string, tools []*Tool, outer Outer) (*Composition, error) {
	if why := all.Check(name, outer); why != "" {
		return nil, errors.New(why)
	}
	c := composer{sets: all, tools: tools, outer: outer, made: make(map[string]*Composition)}
	return c.compose(name), nil
}

// composer composes one set and the sets that it names, each once.
type composer struct {
	sets  All
	tools []*Tool
	outer Outer
	made  map[string]*Composition
}

func (c *composer) compose(name string) *Composition {
	if done := c.made[name]; done != nil {
		return done
	}
	s := c.sets[name]
	if s == nil {
		c.made[name] = c.outer(name)
		return c.made[name]
	}
	taken := make(map[*Tool]bool)
	var members []Member
	for i := range s.Include {
		for _, m := range c.selected(&s.Include[i], s.Names) {
			if !taken[m.Tool] {
				taken[m.Tool] = true
				members = append(members, m)
			}
		}
	}
	for i := range s.Exclude {
		for _, m := range c.selected(&s.Exclude[i], s.Names) {
			delete(taken, m.Tool)
		}
	}
	members = slices.DeleteFunc(members, func(m Member) bool { return !taken[m.Tool] })
	policy := ConflictError
	if s.Names != nil {
		policy = cmp.Or(s.Names.Conflict, policy)
	}
	done := settle(members, policy)
	c.made[name] = done
	return done
}

// selected returns the tools that a selector of a set with the naming n selects, in order.
func (c *composer) selected(s *Selector, n *Naming) []Member {
	var from []Member
	if s.Set != "" {
		from = c.compose(s.Set).Members
	} else {
		from = make([]Member, len(c.tools))
		for i, t := range c.tools {
			from[i] = Member{Tool: t}
		}
	}
	var members []Member
	for _, m := range from {
		if !s.matches(m.Tool) {
			continue
		}
		if n != nil || m.Name == "" {
			m.Name = n.name(m.Tool)
		}
		members = append(members, m)
	}
	return members
}

// matches reports whether the selector matches the tool, apart from its sets.
func (s *Selector) matches(t *Tool) bool {
	return matchesPattern(s.Server, string(t.Server)) && matchesPattern(s.Tool, t.Name) &&
		agrees(s.ReadOnly, t.ReadOnly) && agrees(s.Destructive, t.Destructive) && agrees(s.Idempotent, t.Idempotent) && agrees(s.OpenWorld, t.OpenWorld) &&
		(s.MaxRiskLevel == 0 || max(t.RiskLevel, 1) <= s.MaxRiskLevel) &&
		!slices.ContainsFunc(s.Tags, func(tag string) bool { return !slices.Contains(t.Tags, tag) })
}

func matchesPattern(pattern, name string) bool {
	return pattern == "" || risk.MatchPattern(pattern, name)
}

func agrees(want *bool, is bool) bool { return want == nil || *want == is }

// name returns the name of a tool by the scheme; nil means the default scheme.
func (n *Naming) name(t *Tool) string {
	prefix, separator := serverInPrefix, "__"
	if n != nil {
		if n.Prefix != nil {
			prefix = *n.Prefix
		}
		if n.Separator != nil {
			separator = *n.Separator
		}
	}
	switch {
	case prefix == "":
		return format.MCPNameAs(t.Name, string(t.Server), t.Name)
	case prefix == serverInPrefix && separator == "__":
		return format.MCPName(string(t.Server), t.Name)
	}
	return format.MCPNameAs(strings.ReplaceAll(prefix, serverInPrefix, string(t.Server))+separator+t.Name, string(t.Server), t.Name)
}

// settle resolves names that several members have.
func settle(members []Member, policy Conflict) *Composition {
	count := make(map[string]int, len(members))
	for _, m := range members {
		count[m.Name]++
	}
	if len(count) == len(members) {
		return &Composition{Members: members}
	}
	if policy == ConflictRename {
		for i := range members {
			if count[members[i].Name] > 1 {
				members[i].Name = format.MCPName(string(members[i].Tool.Server), members[i].Tool.Name)
			}
		}
		return settle(members, ConflictError) // a name by server and tool may still belong to another tool
	}
	done := &Composition{Members: make([]Member, 0, len(members))}
	at := make(map[string]int) // in done.LeftOut
	given := make(map[string]bool)
	for _, m := range members {
		if count[m.Name] == 1 || policy == ConflictPrefer && !given[m.Name] {
			given[m.Name] = true
			done.Members = append(done.Members, m)
			continue
		}
		i, known := at[m.Name]
		if !known {
			i = len(done.LeftOut)
			at[m.Name] = i
			done.LeftOut = append(done.LeftOut, Clash{Name: m.Name})
		}
		done.LeftOut[i].Tools = append(done.LeftOut[i].Tools, m.Tool)
	}
	return done
}
