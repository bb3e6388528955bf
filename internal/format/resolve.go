package format

import (
	"slices"
	"strings"

	"github.com/callyard/callyard/internal/kit/truncate"
	"github.com/callyard/callyard/pkg/schema"
)

// Directory provides the existing servers and tools for name lookups. The functions must be safe
// for concurrent use if [Directory.Candidates] is called concurrently.
type Directory struct {
	// Servers returns the ids of all servers.
	Servers func() []string
	// Tools returns the names of the tools of one server.
	Tools func(server string) []string
	// Has reports whether the server has the tool.
	Has func(server, tool string) bool
}

// Ref identifies a tool.
type Ref struct {
	Server string `json:"server"`
	Tool   string `json:"tool"`
}

// maxWrittenName limits the length of a name that is looked up, in bytes.
const maxWrittenName = 512

// shownCandidates limits the tools in the error for an ambiguous name.
const shownCandidates = 5

// namespaces lists the prefixes that models put before the name of a tool.
var namespaces = []string{"functions.", "functions::", "functions/", "default_api.", "default_api:", "tools.", "tool.", "mcp__", "mcp_", "mcp."}

// Unknown returns the error for a name that no tool has, of KindNotFound.
func Unknown(name string) *schema.Error {
	return schema.Errorf(schema.KindNotFound, "There is no tool %q. Use one of the listed names.", truncate.Within(name, 128))
}

// Ambiguous returns the error for a name that several tools have, of KindNotFound. candidates are
// their full names.
func Ambiguous(name string, candidates []string) *schema.Error {
	return schema.Errorf(schema.KindNotFound, "There are %d tools named %q; use one of: %s.", len(candidates), truncate.Within(name, 128), strings.Join(candidates[:min(len(candidates), shownCandidates)], ", "))
}

// Candidates returns the tools that a model can mean by the name: the tool with exactly this
// [Name], else all tools that the name can stand for. Models write other separators (server.tool,
// server/tool, server:tool), add a namespace prefix (functions.x, mcp__server__tool) or omit the
// server.
func (d Directory) Candidates(name string) []Ref {
	if len(name) > maxWrittenName {
		return nil
	}
	if ref, ok := d.exact(name); ok {
		return []Ref{ref}
	}
	var several []Ref // candidates for the name without the namespace
	for _, prefix := range namespaces {
		if rest, ok := strings.CutPrefix(name, prefix); ok && rest != "" {
			found := d.Candidates(rest)
			if len(found) == 1 {
				return found
			}
			if len(several) == 0 {
				several = found
			}
		}
	}
	found := d.split(name)
	if len(found) == 0 {
		for _, server := range d.Servers() {
			if d.Has(server, name) {
				found = append(found, Ref{server, name})
			}
		}
	}
	if len(found) == 0 {
		return several
	}
	return found
}

// exact returns the tool with exactly this [Name].
func (d Directory) exact(name string) (Ref, bool) {
	if server, tool, ok := strings.Cut(name, separator); ok && d.Has(server, tool) && Name(server, tool) == name {
		return Ref{server, tool}, true
	}
	if !digested(name) {
		return Ref{}, false
	}
	for _, server := range d.Servers() {
		if s := legalOnly(server); !strings.HasPrefix(name, s[:min(len(s), minServerPart)]) {
			continue
		}
		for _, tool := range d.Tools(server) {
			if Name(server, tool) == name {
				return Ref{server, tool}, true
			}
		}
	}
	return Ref{}, false
}

// split tries each position at which a server's id may end.
func (d Directory) split(name string) (found []Ref) {
	for i := 1; i < len(name); i++ {
		for _, sep := range []string{separator, "::", "--", ".", "/", ":"} {
			tool, ok := strings.CutPrefix(name[i:], sep)
			if ref := (Ref{name[:i], tool}); ok && tool != "" && d.Has(ref.Server, tool) && !slices.Contains(found, ref) {
				found = append(found, ref)
			}
		}
	}
	return found
}
