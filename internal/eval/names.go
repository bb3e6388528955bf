package eval

import (
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// unknownTool is the prefix of the key of a name that is not a tool of the sample. No key of a tool
// starts with it.
const unknownTool = "?"

// Names compares names written by a model with the tools of one sample. It is safe for concurrent
// use.
//
// A name is normalized in steps: Unicode NFC, no surrounding white space, and lower case; the text
// after the last "::"; without "functions."; without a prefix that names a server of the sample;
// without a leading "mcp_" and a trailing "_mcp" or "_tool". In all forms, each run of hyphens,
// underscores, dots and white space becomes one underscore. The published evaluation names these
// steps (arXiv paper of MCP Bridge, section 4.1) without their details or order.
//
// Stripping can make two tools of a sample equal, such as playwright_click and puppeteer_click.
// Therefore a form that two tools have after the same step identifies neither, a form of an earlier
// step takes precedence over one of a later step, and an exact name always takes precedence.
type Names struct {
	exact   map[string]string // name → key
	forms   map[string]string // normalized form → key, "" for a form of several tools
	servers []string          // prefixes of servers, in lower case
}

// NewNames returns the names of the tools of a sample.
func NewNames(tools []Tool) *Names {
	n := &Names{exact: make(map[string]string, len(tools)), forms: make(map[string]string, 2*len(tools))}
	for i := range tools {
		n.addServer(tools[i].Server)
	}
	unique := make([]string, 0, len(tools))
	for i := range tools {
		name := tools[i].Name
		if _, known := n.exact[name]; !known {
			n.exact[name] = name
			unique = append(unique, name)
		}
	}
	forms := make([][nameSteps]string, len(unique))
	for i, name := range unique {
		forms[i] = n.steps(name)
	}
	taken := make(map[string]string, len(unique)) // forms of one step
	for step := range nameSteps {
		clear(taken)
		for i, name := range unique {
			form := forms[i][step]
			if step > 0 && form == forms[i][step-1] {
				continue // it was seen
			}
			if owner, ok := taken[form]; ok && owner != name {
				taken[form] = ""
			} else if !ok {
				taken[form] = name
			}
		}
		for form, owner := range taken {
			if _, ok := n.forms[form]; !ok {
				n.forms[form] = owner
			}
		}
	}
	return n
}

func (n *Names) addServer(server string) {
	server = strings.ToLower(strings.TrimSpace(norm.NFC.String(server)))
	if server == "" {
		return
	}
	n.servers = appendNew(n.servers, server)
	if spelled := separated(server); spelled != "" {
		n.servers = appendNew(n.servers, spelled)
	}
}

// Key identifies the tool that a name refers to. Two names with the same key refer to the same
// tool. A name that is not a tool of the sample has the key of its normalized form.
func (n *Names) Key(name string) string {
	if key, ok := n.exact[name]; ok {
		return key
	}
	forms := n.steps(name)
	for _, form := range forms {
		if key := n.forms[form]; key != "" {
			return key
		}
	}
	return unknownTool + forms[nameSteps-1]
}

// Known returns the tool that a name refers to.
func (n *Names) Known(name string) (tool string, known bool) {
	key := n.Key(name)
	return key, !strings.HasPrefix(key, unknownTool) || n.exact[key] != ""
}

// nameSteps is the number of forms of a name.
const nameSteps = 6

// steps returns the forms of a name, starting with the one closest to the original.
func (n *Names) steps(name string) (forms [nameSteps]string) {
	s := name
	if !norm.NFC.IsNormalString(s) {
		s = norm.NFC.String(s)
	}
	s = strings.ToLower(strings.TrimSpace(s))
	forms[0] = separated(s)
	step := 1
	next := func(after string) {
		if forms[step] = forms[step-1]; len(after) != len(s) {
			if after = kept(s, after); len(after) != len(s) {
				s, forms[step] = after, separated(after)
			}
		}
		step++
	}
	next(afterLast(s, "::"))
	next(strings.TrimPrefix(s, "functions."))
	next(n.withoutServer(s))
	next(trimFirst(s, "mcp_", "mcp-"))
	next(trimLast(s, "_mcp", "-mcp", "_tool", "-tool"))
	return forms
}

// kept returns the text after a step, or the text before it if the step leaves nothing.
func kept(before, after string) string {
	if strings.Trim(after, "-_.:/ ") == "" {
		return before
	}
	return after
}

// appendNew appends a text, unless the list has it.
func appendNew(list []string, text string) []string {
	if slices.Contains(list, text) {
		return list
	}
	return append(list, text)
}

func trimFirst(s string, prefixes ...string) string {
	for _, prefix := range prefixes {
		if rest, ok := strings.CutPrefix(s, prefix); ok {
			return rest
		}
	}
	return s
}

func trimLast(s string, suffixes ...string) string {
	for _, suffix := range suffixes {
		if rest, ok := strings.CutSuffix(s, suffix); ok {
			return rest
		}
	}
	return s
}

// afterLast returns the text after the last separator, or the whole text if there is none.
func afterLast(s, separator string) string {
	if at := strings.LastIndex(s, separator); at >= 0 {
		return s[at+len(separator):]
	}
	return s
}

// withoutServer removes the name of a server of the sample with its separator, the longest that
// matches.
func (n *Names) withoutServer(s string) string {
	rest := s
	for _, server := range n.servers {
		after, ok := strings.CutPrefix(s, server)
		if !ok {
			after, ok = strings.CutPrefix(strings.TrimPrefix(s, "mcp__"), server)
		}
		if !ok || after == "" || !strings.ContainsRune("_/.:-", rune(after[0])) {
			continue
		}
		after = strings.TrimPrefix(after[1:], "_")
		if len(after) < len(rest) {
			rest = after
		}
	}
	return rest
}

// separated replaces each run of separators with one underscore and trims them at the ends.
func separated(s string) string {
	clean := true
	for i := 0; i < len(s) && clean; i++ {
		c := s[i]
		clean = c < 0x80 && c != '-' && c != '.' && c > ' ' && (c != '_' || i > 0 && i < len(s)-1 && s[i-1] != '_')
	}
	if clean {
		return s
	}
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool {
		return r == '-' || r == '_' || r == '.' || unicode.IsSpace(r)
	}), "_")
}
