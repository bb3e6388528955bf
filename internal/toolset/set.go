package toolset

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/callyard/callyard/internal/config"
)

// Set is a named, ordered selection of tools.
type Set struct {
	// Name is the name in URLs and keys.
	Name string `json:"name,omitempty" yaml:"name" doc:"The name of the set." example:"research"`
	// Description is the purpose of the set.
	Description string `json:"description,omitempty" yaml:"description" maxLength:"2000" doc:"What the set is for." example:"Find and read, change nothing."`
	// Include selects the tools in order. A tool is placed where it is selected first.
	Include []Selector `json:"include" yaml:"include" nullable:"false" minItems:"1" maxItems:"256" doc:"Selects the tools, in order. A tool that several selectors match has the position of the first match."`
	// Exclude removes tools.
	Exclude []Selector `json:"exclude,omitempty" yaml:"exclude" nullable:"false" maxItems:"256" doc:"Excludes the matching tools again."`
	// Names defines the names of the tools in this set. If nil, tools of an included set keep their
	// names of that set, and others are named by the default [Naming].
	Names *Naming `json:"names,omitempty" yaml:"names" doc:"The names of the tools in the set. By default, tools of an included set keep their names of that set, and others are named server__tool."`
}

// Selector selects tools that meet all given conditions. An empty one selects every tool.
type Selector struct {
	// Server and Tool are name patterns: "*" matches any characters, "?" one; "" matches every name.
	Server string `json:"server,omitempty" yaml:"server" maxLength:"256" doc:"A pattern of server ids: * stands for any characters, ? for one." example:"files"`
	Tool   string `json:"tool,omitempty" yaml:"tool" maxLength:"256" doc:"A pattern of tool names." example:"read_*"`
	// Set selects only tools of another set.
	Set string `json:"set,omitempty" yaml:"set" doc:"Only tools of this set." example:"research"`
	// Tags selects tools that have all these tags.
	Tags []string `json:"tags,omitempty" yaml:"tags" nullable:"false" maxItems:"64" doc:"Tags that the tool must have, all of them."`
	// The server's hints about the tool. They only select tools; the policy decides what a call may do.
	ReadOnly    *bool `json:"read_only,omitempty" yaml:"read_only" doc:"Only tools whose hint readOnlyHint has this value."`
	Destructive *bool `json:"destructive,omitempty" yaml:"destructive" doc:"Only tools whose hint destructiveHint has this value. A tool without the hint counts as destructive unless it is read-only."`
	Idempotent  *bool `json:"idempotent,omitempty" yaml:"idempotent" doc:"Only tools whose hint idempotentHint has this value."`
	OpenWorld   *bool `json:"open_world,omitempty" yaml:"open_world" doc:"Only tools whose hint openWorldHint has this value. Without the hint, the value is true."`
	// MaxRiskLevel is the highest risk level of the tool's server, 1 to 3; 0 means any. A server
	// without a level has level 1.
	MaxRiskLevel int `json:"max_risk_level,omitempty" yaml:"max_risk_level" minimum:"0" maximum:"3" doc:"The highest risk level of the tool's server, 0 for any; a server without a level has level 1."`
}

// Naming is the scheme of names in a set: prefix, separator, and the tool's own name.
type Naming struct {
	// Prefix precedes the separator. "{server}" in it is replaced by the server. Nil means
	// "{server}". With "" the name is the tool's own name.
	Prefix *string `json:"prefix,omitempty" yaml:"prefix" doc:"The text before the separator; {server} in it is replaced by the id of the server. With an empty prefix, tools keep their own names." default:"{server}"`
	// Separator is between prefix and name. Nil means "__".
	Separator *string `json:"separator,omitempty" yaml:"separator" doc:"The text between the prefix and the name of the tool." default:"__"`
	// Conflict decides what happens to tools that would have the same name. "" means [ConflictError].
	Conflict Conflict `json:"conflict,omitempty" yaml:"conflict" enum:"error,prefer,rename" doc:"What happens if several tools would have the same name. error leaves all of them out and reports them, prefer gives the name to the one that is selected first, rename names them by server and tool." default:"error"`
}

// Conflict is a policy for tools of a set that would have the same name.
type Conflict string

// Values of [Conflict].
const (
	// ConflictError leaves out all tools with that name and reports them.
	ConflictError Conflict = "error"
	// ConflictPrefer gives the name to the tool that is selected first and leaves out the others.
	ConflictPrefer Conflict = "prefer"
	// ConflictRename names all of them by server and tool.
	ConflictRename Conflict = "rename"
)

// Limits of one set.
const (
	mostSelectors   = 256
	mostTags        = 64
	mostDescription = 2000 // bytes
	mostPattern     = 256  // bytes
)

var (
	// nameForm matches names of sets, which appear in URLs after "@".
	nameForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$`)
	// affixForm matches prefixes and separators. They may contain the characters of MCP names.
	affixForm = regexp.MustCompile(`^[A-Za-z0-9_.-]{0,64}$`)
)

const serverInPrefix = "{server}"

// Check returns the faults of the set that do not depend on other sets.
func (s *Set) Check() []config.Fault {
	var faults config.Collector
	if !nameForm.MatchString(s.Name) {
		faults.Addf("name", "must be 1 to 64 letters, digits, \"_\", \"-\" and \".\", and begin with a letter or digit.")
	}
	if len(s.Description) > mostDescription {
		faults.Addf("description", "exceeds %d bytes; shorten it.", mostDescription)
	}
	if len(s.Include) == 0 {
		faults.Addf("include", "is empty; select tools, for example by {\"server\": \"files\"}.")
	}
	for member, list := range map[string][]Selector{"include": s.Include, "exclude": s.Exclude} {
		if len(list) > mostSelectors {
			faults.Addf(member, "has %d selectors and exceeds the limit of %d; use patterns, or several sets.", len(list), mostSelectors)
			continue
		}
		for i := range list {
			list[i].check(&faults, fmt.Sprintf("%s[%d]", member, i))
		}
	}
	if s.Names != nil {
		s.Names.check(&faults)
	}
	slices.SortFunc(faults, func(a, b config.Fault) int { return strings.Compare(a.Path, b.Path) })
	return faults
}

func (s *Selector) check(faults *config.Collector, path string) {
	for member, pattern := range map[string]string{"server": s.Server, "tool": s.Tool} {
		if len(pattern) > mostPattern {
			faults.Addf(path+"."+member, "exceeds %d bytes; shorten it.", mostPattern)
		}
	}
	if s.Set != "" && !nameForm.MatchString(s.Set) {
		faults.Addf(path+".set", "is not the name of a set.")
	}
	if len(s.Tags) > mostTags || slices.Contains(s.Tags, "") {
		faults.Addf(path+".tags", "must be at most %d tags, none of them empty.", mostTags)
	}
	if s.MaxRiskLevel < 0 || s.MaxRiskLevel > 3 {
		faults.Addf(path+".max_risk_level", "must be 1, 2 or 3.")
	}
}

func (n *Naming) check(faults *config.Collector) {
	if n.Prefix != nil && !affixForm.MatchString(strings.ReplaceAll(*n.Prefix, serverInPrefix, "")) {
		faults.Addf("names.prefix", "must be at most 64 letters, digits, \"_\", \"-\", \".\" and \"{server}\".")
	}
	if n.Separator != nil && !affixForm.MatchString(*n.Separator) {
		faults.Addf("names.separator", "must be at most 64 letters, digits, \"_\", \"-\" and \".\".")
	}
	switch n.Conflict {
	case "", ConflictError, ConflictPrefer, ConflictRename:
	default:
		faults.Addf("names.conflict", "must be error, prefer or rename.")
	}
}

// uses returns the sets that the set names.
func (s *Set) uses() []string {
	var names []string
	for _, list := range [][]Selector{s.Include, s.Exclude} {
		for i := range list {
			if list[i].Set != "" {
				names = append(names, list[i].Set)
			}
		}
	}
	return names
}

// All holds sets by name.
type All map[string]*Set

// Outer returns a set of another owner, which sets of an [All] may name as well, or nil if there is
// none. A set of the [All] takes precedence over one with the same name.
type Outer func(name string) *Composition

// Check returns the reason why the set cannot be composed: it names a set that does not exist, or
// includes itself through others. "" means that it can. outer may be nil.
func (all All) Check(name string, outer Outer) string {
	return (&checker{all, outer, make(map[string]bool)}).check(name, nil)
}

// checker checks a set and the sets that it names, each once, because the number of paths between
// two sets can double with each set in between.
type checker struct {
	sets  All
	outer Outer
	right map[string]bool
}

func (c *checker) check(name string, path []string) string {
	if slices.Contains(path, name) {
		return "The set includes itself: " + strings.Join(append(path, name), " → ") + "."
	}
	if c.right[name] {
		return ""
	}
	s := c.sets[name]
	if s == nil {
		if len(path) == 0 {
			return fmt.Sprintf("There is no set %q.", name)
		}
		if c.outer != nil && c.outer(name) != nil {
			return ""
		}
		return fmt.Sprintf("Set %q names the set %q, which does not exist.", path[len(path)-1], name)
	}
	path = append(path, name)
	for _, inner := range s.uses() {
		if why := c.check(inner, path); why != "" {
			return why
		}
	}
	c.right[name] = true
	return ""
}

// UsedBy returns the sets that name the set, sorted.
func (all All) UsedBy(name string) []string {
	var users []string
	for _, s := range all {
		if slices.Contains(s.uses(), name) {
			users = append(users, s.Name)
		}
	}
	slices.Sort(users)
	return users
}
