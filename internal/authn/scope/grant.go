package scope

import (
	"slices"
	"strings"
	"time"

	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

// Grant is what a credential with scopes lets its principal do; it is a schema.Grant. It is
// never changed.
type Grant struct {
	Scopes Set
	// Tools are patterns of SERVER/TOOL with * and ?: only tools that fit one of them may be
	// called. None: all that the scopes let call.
	Tools []string
	// Member reports whether a set has a tool; nil: no set has any.
	Member Member
	// ID is told by Identity.
	ID string
	// Role is where the scopes come from; "" where they were listed.
	Role Role
	// Caller is the access token that the request was sent with; nil for a key. A server's
	// credential may be got for it, and it goes no further.
	Caller *CallerToken
	// Access is the grant of the authorization server that the access token comes of; "" for
	// other credentials.
	Access string
}

// CallerToken is the access token of a caller, and when it ends.
type CallerToken struct {
	Token   Bearer
	Expires time.Time
}

// Bearer is an access token. It is not shown when it is printed.
type Bearer string

// String hides the token.
func (Bearer) String() string { return "[an access token]" }

// GoString hides the token.
func (b Bearer) GoString() string { return b.String() }

// MarshalText hides the token.
func (b Bearer) MarshalText() ([]byte, error) { return []byte(b.String()), nil }

// Subject returns the access token of the request and its end; "" for a key.
func (g *Grant) Subject() (string, time.Time) {
	if g.Caller == nil {
		return "", time.Time{}
	}
	return string(g.Caller.Token), g.Caller.Expires
}

// Has reports whether one of the scopes is there.
func (g *Grant) Has(scopes ...string) bool { return g.Scopes.Has(scopes...) }

// MayCall reports whether the tool may be called.
func (g *Grant) MayCall(server schema.ServerID, tool string) bool {
	return g.Scopes.MayCall(server, tool, g.Member) && (len(g.Tools) == 0 || fits(g.Tools, string(server)+"/"+tool))
}

// calls reports whether some tool may be called.
func (g *Grant) calls() bool { return g.Scopes.Has(CallTools) }

// Restricted reports whether only a part of the tools is shown: of whoever may call tools those
// that it may call. Whoever may call none, and reads lists, sees all of them, because a client
// asks for the scope to call what it found.
func (g *Grant) Restricted() bool {
	return len(g.Tools) > 0 || g.calls() && !g.Scopes.includes(CallTools)
}

// Shows reports whether the tool is shown; with an empty name, whether the prompts and resources
// of the server are.
func (g *Grant) Shows(server schema.ServerID, tool string) bool {
	if g.calls() {
		return g.MayCall(server, tool)
	}
	return len(g.Tools) == 0 || fits(g.Tools, string(server)+"/"+tool)
}

// Key is the same for grants that show the same.
func (g *Grant) Key() string {
	key := strings.Join(g.Scopes.List(), " ") + "\x00" + strings.Join(g.Tools, "\x00")
	if len(g.Scopes.sets) > 0 {
		key += "\x00@" + string(g.Scopes.of) // the same names may be of different sets
	}
	return key
}

// Identity is the issuer, subject and tenant of a token, and the id of a key.
func (g *Grant) Identity() string { return g.ID }

// Gives reports whether whoever has the grant may give these scopes and patterns of tools to
// a key: it has them itself.
func (g *Grant) Gives(scopes *Set, tools []string) bool {
	if !scopes.Within(&g.Scopes) {
		return false
	}
	if len(g.Tools) == 0 {
		return true
	}
	wider := func(tool string) bool {
		return !slices.Contains(g.Tools, tool) && (strings.ContainsAny(tool, "*?") || !fits(g.Tools, tool))
	}
	return len(tools) > 0 && !slices.ContainsFunc(tools, wider)
}

func fits(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return risk.MatchPattern(p, name) })
}
