package scope

import (
	"slices"
	"strings"
	"time"

	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

// Grant is what a credential with scopes allows its principal to do. It implements schema.Grant and
// is never changed.
type Grant struct {
	Scopes Set
	// Tools are patterns of SERVER/TOOL with * and ?. Only tools that match one of them may be
	// called. If empty, the scopes alone decide.
	Tools []string
	// Member reports whether a set contains a tool. If nil, all sets are empty.
	Member Member
	// ID is the return value of Identity.
	ID string
	// Role is the role that the scopes come from, or "" if they were listed.
	Role Role
	// Caller is the access token of the request, or nil for a key. It may be exchanged for a
	// server's credential and is sent nowhere else.
	Caller *CallerToken
	// Access is the authorization server's grant of the access token, or "" for other credentials.
	Access string
}

// CallerToken is the access token of a caller and its expiry.
type CallerToken struct {
	Token   Bearer
	Expires time.Time
}

// Bearer is an access token. Printing never shows it.
type Bearer string

// String hides the token.
func (Bearer) String() string { return "[an access token]" }

// GoString hides the token.
func (b Bearer) GoString() string { return b.String() }

// MarshalText hides the token.
func (b Bearer) MarshalText() ([]byte, error) { return []byte(b.String()), nil }

// Subject returns the access token of the request and its expiry, or "" for a key.
func (g *Grant) Subject() (string, time.Time) {
	if g.Caller == nil {
		return "", time.Time{}
	}
	return string(g.Caller.Token), g.Caller.Expires
}

// Has reports whether the grant has one of the scopes.
func (g *Grant) Has(scopes ...string) bool { return g.Scopes.Has(scopes...) }

// MayCall reports whether the tool may be called.
func (g *Grant) MayCall(server schema.ServerID, tool string) bool {
	return g.Scopes.MayCall(server, tool, g.Member) && (len(g.Tools) == 0 || matchesAny(g.Tools, string(server)+"/"+tool))
}

// calls reports whether any tool may be called.
func (g *Grant) calls() bool { return g.Scopes.Has(CallTools) }

// Restricted reports whether only a part of the tools is shown. A principal that may call tools
// sees only those that it may call. A principal that may call none but may read lists sees all,
// because a client requests the scope to call what it found.
func (g *Grant) Restricted() bool {
	return len(g.Tools) > 0 || g.calls() && !g.Scopes.includes(CallTools)
}

// Shows reports whether the tool is shown. With an empty name, it reports whether the prompts and
// resources of the server are shown.
func (g *Grant) Shows(server schema.ServerID, tool string) bool {
	if g.calls() {
		return g.MayCall(server, tool)
	}
	return len(g.Tools) == 0 || matchesAny(g.Tools, string(server)+"/"+tool)
}

// Key returns the same value for grants that show the same tools.
func (g *Grant) Key() string {
	key := strings.Join(g.Scopes.List(), " ") + "\x00" + strings.Join(g.Tools, "\x00")
	if len(g.Scopes.sets) > 0 {
		key += "\x00@" + string(g.Scopes.of) // the same names may refer to different sets
	}
	return key
}

// Identity returns the issuer, subject and tenant of a token, or the id of a key.
func (g *Grant) Identity() string { return g.ID }

// Includes reports whether a grant allows everything that another one of the same principal allows. nil
// allows everything.
func Includes(wide, narrow schema.Grant) bool {
	if wide == nil || wide == narrow {
		return true
	}
	w, ok1 := wide.(*Grant)
	n, ok2 := narrow.(*Grant)
	return ok1 && ok2 && w.Gives(&n.Scopes, n.Tools)
}

// Gives reports whether the holder of the grant may give these scopes and tool patterns to a key,
// because it has them itself.
func (g *Grant) Gives(scopes *Set, tools []string) bool {
	if !scopes.Within(&g.Scopes) {
		return false
	}
	if len(g.Tools) == 0 {
		return true
	}
	wider := func(tool string) bool {
		return !slices.Contains(g.Tools, tool) && (strings.ContainsAny(tool, "*?") || !matchesAny(g.Tools, tool))
	}
	return len(tools) > 0 && !slices.ContainsFunc(tools, wider)
}

func matchesAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return risk.MatchPattern(p, name) })
}

// TenantsOf returns the tenants whose items a principal may see: all for a principal of the default
// tenant that has one of the scopes, otherwise its own.
func TenantsOf(who *schema.Principal, scopes ...string) schema.Tenants {
	if who.Tenant.Is(schema.DefaultTenant) && who.Has(scopes...) {
		return schema.AllTenants()
	}
	return schema.OnlyTenant(who.Tenant)
}
