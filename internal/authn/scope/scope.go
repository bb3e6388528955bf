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
	// ListTools is the part of ReadTools that shows servers, sets and tools, without workers,
	// configuration, events and metrics.
	ListTools = "tools:list"
	CallTools = "tools:call"
	ReadCalls = "calls:read"
	// ReadAllCalls includes ReadCalls, and shows the records of other principals.
	ReadAllCalls = "calls:read:all"
	Approve      = "approve"
	Admin        = "admin"
	// AdminTenant is the part of Admin that concerns only the tenant of whoever has it.
	AdminTenant = "admin:tenant"
)

// TenantClaim is the claim with which the authorization server of an approver names the tenant
// of a person.
const TenantClaim = "urn:callyard:tenant"

// GrantClaim is the claim with which it names the grant that a token comes of.
const GrantClaim = "urn:callyard:grant"

// All returns the scopes that are published.
func All() []string {
	return []string{ReadTools, ListTools, CallTools, ReadCalls, ReadAllCalls, Approve, Admin, AdminTenant}
}

// wider is the scope that includes another one.
var wider = map[string]string{ListTools: ReadTools, ReadCalls: ReadAllCalls, AdminTenant: Admin}

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
	of      schema.TenantID   // whose names the sets have; see Naming
}

// Member reports whether a set has a tool; the name of the set is as the tenant uses it.
type Member func(tenant schema.TenantID, set string, server schema.ServerID, tool string) bool

// Naming returns the scopes with the names of sets as the tenant uses them: its own sets first.
// Without it they name sets of the installation, which its operators alone change.
func (s Set) Naming(tenant schema.TenantID) Set {
	s.of = tenant.Stored()
	return s
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
		if s.includes(one) {
			return true
		}
		if one == CallTools && len(s.servers)+len(s.sets) > 0 {
			return true
		}
	}
	return false
}

// includes reports whether a scope is there, or a wider one.
func (s *Set) includes(one string) bool {
	if slices.Contains(s.plain, one) {
		return true
	}
	if up, ok := wider[one]; ok {
		return slices.Contains(s.plain, up)
	}
	name, ok := strings.CutPrefix(one, narrow)
	if !ok {
		return false
	}
	set, isSet := strings.CutPrefix(name, setMark)
	return s.CallsAll() || isSet && slices.Contains(s.sets, set) || !isSet && slices.Contains(s.servers, schema.ServerID(name))
}

// List returns the scopes as [Parse] reads them.
func (s *Set) List() []string {
	list := slices.Clone(s.plain)
	for _, server := range s.servers {
		list = append(list, narrow+string(server))
	}
	for _, set := range s.sets {
		list = append(list, narrow+setMark+set)
	}
	return list
}

// Both returns the scopes that two sets have in common: of two where one includes the other,
// the narrower.
func Both(a, b *Set) Set {
	var list []string
	for _, pair := range [][2]*Set{{a, b}, {b, a}} {
		for _, one := range pair[0].List() {
			if pair[1].includes(one) && !slices.Contains(list, one) {
				list = append(list, one)
			}
		}
	}
	return Of(list)
}

// Empty reports whether there is no scope.
func (s *Set) Empty() bool { return len(s.plain)+len(s.servers)+len(s.sets) == 0 }

// MayCall reports whether a tool may be called. member says whether a set has it; with an
// empty tool, only scopes for all of the server count.
func (s *Set) MayCall(server schema.ServerID, tool string, member Member) bool {
	if s.CallsAll() || slices.Contains(s.servers, server) {
		return true
	}
	return tool != "" && member != nil && slices.ContainsFunc(s.sets, func(set string) bool { return member(s.of.OrDefault(), set, server, tool) })
}

// NamesOwn reports whether names of sets are those of a tenant; see [Set.Naming].
func (s *Set) NamesOwn() bool { return s.of != "" }

// CallsAll reports whether all tools may be called.
func (s *Set) CallsAll() bool { return slices.Contains(s.plain, CallTools) }

// Within reports whether everything that s lets do, the other lets do as well. Sets of the same
// name are the same for those only who use names alike.
func (s *Set) Within(other *Set) bool {
	if len(s.sets) > 0 && s.of != other.of && !other.CallsAll() {
		return false
	}
	return !slices.ContainsFunc(s.List(), func(one string) bool { return !other.includes(one) })
}
