package callers

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/callyard/callyard/internal/authn/scope"
	"github.com/callyard/callyard/pkg/schema"
)

// WellKnown is the path prefix of protected resource metadata (RFC 9728, section 3.1).
const WellKnown = "/.well-known/oauth-protected-resource"

// Resource returns the address of the resource at a path, for which tokens are issued. It does not
// depend on a request.
func (c *Callers) Resource(path string) string { return *c.public.Load() + path }

// metadataURL returns the address of the metadata of the resource, or "" if the address of the
// front door is unknown.
func (c *Callers) metadataURL(path string) string {
	base := *c.public.Load()
	if base == "" {
		return ""
	}
	scheme, rest, _ := strings.Cut(base, "://")
	host, below, found := strings.Cut(rest, "/")
	if found {
		path = "/" + below + path
	}
	return scheme + "://" + host + WellKnown + path
}

// usual are the scopes that a challenge names for a client without a token.
const usual = scope.ReadTools + " " + scope.CallTools

// Unauthenticated returns the WWW-Authenticate header of a 401 response. It names the metadata for
// MCP endpoints only.
func (c *Callers) Unauthenticated(r *http.Request, path string) string {
	b := `Bearer realm="callyard"`
	if c.o.Tokens.Configured() {
		if r.Header.Get("Authorization") != "" {
			b += `, error="invalid_token"`
		}
		b += `, scope="` + usual + `"`
	}
	return b + c.named(path)
}

func (c *Callers) named(path string) string {
	if at := c.metadataURL(path); path != "" && at != "" {
		return `, resource_metadata="` + at + `"`
	}
	return ""
}

// Insufficient returns the WWW-Authenticate header and the error of a 403 response to a credential
// that has none of the required scopes.
func (c *Callers) Insufficient(path string, need ...string) (header string, err *schema.Error) {
	header = `Bearer realm="callyard", error="insufficient_scope", scope="` + quotable(need[0]) + `"` + c.named(path)
	return header, schema.Errorf(schema.KindForbidden, "Your credential does not have the scope %s.", strings.Join(need, " or "))
}

// quotable removes characters that are not allowed in the header, because a scope may contain the
// name of a server.
func quotable(text string) string {
	return strings.Map(func(r rune) rune {
		if r <= ' ' || r > '~' || r == '"' || r == '\\' {
			return -1
		}
		return r
	}, text)
}

// metadata is protected resource metadata (RFC 9728).
type metadata struct {
	Resource string   `json:"resource"`
	Servers  []string `json:"authorization_servers,omitempty"`
	Scopes   []string `json:"scopes_supported,omitempty"`
	Name     string   `json:"resource_name"`
	Methods  []string `json:"bearer_methods_supported"`
}

// Metadata returns the metadata of the resource at a path. ok is false if the address of the front
// door is unknown.
func (c *Callers) Metadata(path string) (body []byte, ok bool) {
	if *c.public.Load() == "" {
		return nil, false
	}
	m := metadata{Resource: c.Resource(path), Name: "Callyard", Methods: []string{"header"}}
	for i := range c.o.Issuers {
		if iss := c.o.Issuers[i].Issuer; strings.HasPrefix(iss, "http") {
			m.Servers = append(m.Servers, iss)
		}
	}
	if c.o.Tokens.Configured() {
		m.Scopes = scope.All()
	}
	body, err := json.Marshal(m)
	return body, err == nil
}

// Below removes the path of the configured address from a path, for proxies that pass it on.
func (c *Callers) Below(path string) string {
	_, rest, _ := strings.Cut(*c.public.Load(), "://")
	_, below, found := strings.Cut(rest, "/")
	if after, ok := strings.CutPrefix(path, "/"+below+"/"); found && ok {
		return "/" + after
	}
	return path
}
