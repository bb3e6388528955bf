// Package scope defines what a credential allows its principal to do: the scopes, which scopes
// include others, and the scope that each operation of the REST API and each MCP method requires.
//
// There is one table of requirements. The front door does not start if an operation is missing from
// it, so that none is forgotten.
//
// The package knows neither credentials nor the tools of a set.
package scope

import (
	"fmt"
	"slices"
	"strings"

	"github.com/callyard/callyard/pkg/schema"
)

// Scopes. CallTools may be followed by ":" and a server, or ":@" and a set of tools.
const (
	ReadTools = "tools:read"
	// ListTools is the part of ReadTools for servers, sets and tools, without workers,
	// configuration, events and metrics.
	ListTools = "tools:list"
	CallTools = "tools:call"
	ReadCalls = "calls:read"
	// ReadAllCalls includes ReadCalls and the records of other principals.
	ReadAllCalls = "calls:read:all"
	Approve      = "approve"
	Admin        = "admin"
	// AdminTenant is the part of Admin that concerns only the holder's tenant.
	AdminTenant = "admin:tenant"
)

// TenantClaim is the claim in which the approver's authorization server names the tenant of a person.
const TenantClaim = "urn:callyard:tenant"

// GrantClaim is the claim in which it names the grant of a token.
const GrantClaim = "urn:callyard:grant"

// OwnerClaim is the claim in which it names the person, as the approver does.
const OwnerClaim = "owner"

// All returns the published scopes.
func All() []string {
	return []string{ReadTools, ListTools, CallTools, ReadCalls, ReadAllCalls, Approve, Admin, AdminTenant}
}

// wider maps a scope to the scope that includes it.
var wider = map[string]string{ListTools: ReadTools, ReadCalls: ReadAllCalls, AdminTenant: Admin}

const (
	narrow  = CallTools + ":"
	setMark = "@"
	maxName = 256
)

// Set is a set of scopes. The zero value is empty. It is never changed.
type Set struct {
	plain   []string
	servers []schema.ServerID // of tools:call:SERVER
	sets    []string          // of tools:call:@SET
	of      schema.TenantID   // the tenant whose set names these are; see Naming
}

// Member reports whether a set contains a tool. The tenant decides which set the name refers to.
type Member func(tenant schema.TenantID, set string, server schema.ServerID, tool string) bool

// Naming returns the scopes with set names that the tenant resolves, its own sets first. Without
// it, set names refer to the sets of the installation, which only its operators can change.
func (s Set) Naming(tenant schema.TenantID) Set {
	s.of = tenant.Stored()
	return s
}

// Parse parses scopes. The error names the first invalid one.
func Parse(list []string) (Set, error) {
	s, unknown := read(list)
	if len(unknown) > 0 {
		return Set{}, fmt.Errorf("contains %q, which is no scope; the scopes are %s, %sSERVER and %s%sSET", unknown[0], strings.Join(All(), ", "), narrow, narrow, setMark)
	}
	return s, nil
}

// Of parses the scopes of a token. It ignores foreign scopes, such as openid.
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

// Has reports whether the set has one of the scopes or a scope that includes it: tools:call
// includes tools:call:SERVER. For tools:call itself, any narrower scope is sufficient; see
// [Set.MayCall] for the individual tool.
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

// includes reports whether the set has a scope or a wider one.
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

// List returns the scopes in the syntax of [Parse].
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

// Both returns the intersection of two sets. If a scope of one set includes a scope of the other,
// the result has the narrower one.
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

// Empty reports whether the set is empty.
func (s *Set) Empty() bool { return len(s.plain)+len(s.servers)+len(s.sets) == 0 }

// MayCall reports whether a tool may be called. member reports whether a set contains it. With an
// empty tool, only scopes for the whole server count.
func (s *Set) MayCall(server schema.ServerID, tool string, member Member) bool {
	if s.CallsAll() || slices.Contains(s.servers, server) {
		return true
	}
	return tool != "" && member != nil && slices.ContainsFunc(s.sets, func(set string) bool { return member(s.of.OrDefault(), set, server, tool) })
}

// NamesOwn reports whether set names are those of a tenant; see [Set.Naming].
func (s *Set) NamesOwn() bool { return s.of != "" }

// CallsAll reports whether all tools may be called.
func (s *Set) CallsAll() bool { return slices.Contains(s.plain, CallTools) }

// Within reports whether other allows everything that s allows. Sets with the same name are equal
// only if both resolve names for the same tenant.
func (s *Set) Within(other *Set) bool {
	if len(s.sets) > 0 && s.of != other.of && !other.CallsAll() {
		return false
	}
	return !slices.ContainsFunc(s.List(), func(one string) bool { return !other.includes(one) })
}
