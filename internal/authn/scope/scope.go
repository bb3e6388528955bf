// Package scope is what a credential lets its principal do: the scopes, what includes what,
// and which scope each operation of the REST API and each method of MCP requires.
//
// It promises that there is one table of what requires what, and that an operation which is
// not in it is refused at the start of the front door, so that none is forgotten.
//
// It refuses to know credentials, and to know which tools a set has.
package scope

import (
	"fmt"
	"slices"
	"strings"

	"github.com/callyard/callyard/pkg/schema"
)

// The scopes. CallTools may be followed by ":" and a server, or ":@" and a set of tools.
const (
	ReadTools = "tools:read"
	CallTools = "tools:call"
	ReadCalls = "calls:read"
	Approve   = "approve"
	Admin     = "admin"
)

// All returns the scopes that are published.
func All() []string { return []string{ReadTools, CallTools, ReadCalls, Approve, Admin} }

const (
	narrow  = CallTools + ":"
	setMark = "@"
	maxName = 256
)

// Set is a set of scopes. The zero value has none. It is never changed.
type Set struct {
	plain   []string
	servers []schema.ServerID // of tools:call:SERVER
	sets    []string          // of tools:call:@SET
}

// Parse reads scopes. The error names the first one that is none.
func Parse(list []string) (Set, error) {
	s, unknown := read(list)
	if len(unknown) > 0 {
		return Set{}, fmt.Errorf("contains %q, which is no scope; the scopes are %s, %sSERVER and %s%sSET", unknown[0], strings.Join(All(), ", "), narrow, narrow, setMark)
	}
	return s, nil
}

// Of reads the scopes of a token. Those of others, such as openid, are left out.
func Of(list []string) Set {
	s, _ := read(list)
	return s
}

func read(list []string) (s Set, unknown []string) {
	for _, one := range list {
		name, ok := strings.CutPrefix(one, narrow)
		set, isSet := strings.CutPrefix(name, setMark)
		switch {
		case slices.Contains(All(), one):
			s.plain = append(s.plain, one)
		case !ok || name == "" || isSet && set == "" || len(name) > maxName:
			unknown = append(unknown, one)
		case isSet:
			s.sets = append(s.sets, set)
		default:
			s.servers = append(s.servers, schema.ServerID(name))
		}
	}
	return s, unknown
}

// Has reports whether one of the scopes is there, or one that includes it: tools:call
// includes tools:call:SERVER. To use tools:call at all, any of its narrower ones is
// enough; see [Set.MayCall] for which tool.
func (s *Set) Has(scopes ...string) bool {
	for _, one := range scopes {
		if slices.Contains(s.plain, one) {
			return true
		}
		if one == CallTools && len(s.servers)+len(s.sets) > 0 {
			return true
		}
		if name, ok := strings.CutPrefix(one, narrow); ok && (slices.Contains(s.plain, CallTools) || slices.Contains(s.servers, schema.ServerID(name))) {
			return true
		}
	}
	return false
}

// MayCall reports whether a tool may be called. member says whether a set has it; with an
// empty tool, only scopes for all of the server count.
func (s *Set) MayCall(server schema.ServerID, tool string, member func(set string, server schema.ServerID, tool string) bool) bool {
	if slices.Contains(s.plain, CallTools) || slices.Contains(s.servers, server) {
		return true
	}
	return tool != "" && member != nil && slices.ContainsFunc(s.sets, func(set string) bool { return member(set, server, tool) })
}

// Within reports whether everything that s lets do, the other lets do as well.
func (s *Set) Within(other *Set) bool {
	all := slices.Contains(other.plain, CallTools)
	for _, one := range s.plain {
		if !slices.Contains(other.plain, one) {
			return false
		}
	}
	for _, server := range s.servers {
		if !all && !slices.Contains(other.servers, server) {
			return false
		}
	}
	for _, set := range s.sets {
		if !all && !slices.Contains(other.sets, set) {
			return false
		}
	}
	return true
}
