package openapi

import (
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/callyard/callyard/internal/config"
	"github.com/callyard/callyard/internal/kit/mcpwire"
)

// credential is the value that a request carries for one security scheme.
type credential struct{ in, name, value string }

// guard holds the security schemes of a document and the configured credentials.
type guard struct {
	schemes map[string]*openapi3.SecurityScheme
	ready   map[string]credential
	given   map[string]bool // schemes satisfied by configured headers
	taken   map[string]bool // place and name of values that callers must not set
}

func place(in, name string) string {
	if in == "header" {
		name = http.CanonicalHeaderKey(name)
	}
	return in + " " + name
}

// newGuard checks the configured credentials against the schemes. The error lists every credential
// without a scheme.
func newGuard(doc *openapi3.T, cfg *Config) (*guard, error) {
	g := &guard{
		schemes: make(map[string]*openapi3.SecurityScheme), ready: make(map[string]credential),
		given: make(map[string]bool), taken: make(map[string]bool),
	}
	sent := cfg.sent()
	for name := range sent {
		g.taken[place("header", name)] = true
	}
	if doc.Components != nil {
		for name, ref := range doc.Components.SecuritySchemes {
			if ref == nil || ref.Value == nil {
				continue
			}
			s := ref.Value
			g.schemes[name] = s
			if s.Type == "apiKey" {
				g.taken[place(s.In, s.Name)] = true
			}
			if s.Type == "apiKey" && s.In == "header" && has(sent, s.Name) || s.Type != "apiKey" && s.Type != "mutualTLS" && has(sent, "Authorization") {
				g.given[name] = true
			}
		}
	}
	var faults []error
	for _, name := range slices.Sorted(maps.Keys(cfg.OpenAPI.Credentials)) {
		s := g.schemes[name]
		if s == nil {
			known := "it has none"
			if len(g.schemes) > 0 {
				known = "it has " + strings.Join(slices.Sorted(maps.Keys(g.schemes)), ", ")
			}
			faults = append(faults, fmt.Errorf("the credential %q matches no security scheme of the document; %s.", name, known))
			continue
		}
		c, err := carry(s, cfg.OpenAPI.Credentials[name])
		if err != nil {
			faults = append(faults, fmt.Errorf("the credential %q %w", name, err))
			continue
		}
		g.ready[name] = c
	}
	return g, errors.Join(faults...)
}

func has(headers map[string]string, name string) bool {
	for have := range headers {
		if strings.EqualFold(have, name) {
			return true
		}
	}
	return false
}

// carry returns how a request carries a credential.
func carry(s *openapi3.SecurityScheme, c config.Credential) (credential, error) {
	scheme := strings.ToLower(s.Scheme)
	basic := s.Type == "http" && scheme == "basic"
	switch {
	case basic && c.Username == "":
		return credential{}, errors.New("is for HTTP basic authentication; set \"username\" and \"password\".")
	case basic:
		return credential{"header", "Authorization", "Basic " + base64.StdEncoding.EncodeToString([]byte(c.Username+":"+c.Password))}, nil
	case c.Value == "":
		return credential{}, errors.New("is for a key or token; set \"value\".")
	case s.Type == "apiKey" && s.In == "cookie" && (!mcpwire.IsToken(s.Name) || strings.ContainsAny(c.Value, " \",;\\")):
		return credential{}, errors.New("contains a character that is not allowed in cookies; correct it.")
	case s.Type == "apiKey" && (s.In == "query" || s.In == "cookie" || s.In == "header" && mcpwire.IsToken(s.Name) && (strings.EqualFold(s.Name, "Authorization") || !hopByHop[http.CanonicalHeaderKey(s.Name)])):
		return credential{s.In, s.Name, c.Value}, nil
	case s.Type == "http" && scheme == "bearer", s.Type == "oauth2", s.Type == "openIdConnect":
		return credential{"header", "Authorization", "Bearer " + c.Value}, nil
	}
	return credential{}, fmt.Errorf("is for an unsupported kind of scheme (%s %s); remove it.", s.Type, s.Scheme)
}

// choose returns the credentials for an operation. Of several alternatives it takes the first for
// which a credential is configured, or otherwise one that needs none.
func (g *guard) choose(ways openapi3.SecurityRequirements) (carried []credential, lacking string, ok bool) {
	if len(ways) == 0 {
		return nil, "", true
	}
	open := false
	for _, way := range ways {
		if len(way) == 0 {
			open = true
			continue
		}
		carried, missing := []credential(nil), ""
		for _, name := range slices.Sorted(maps.Keys(way)) {
			if c, ok := g.ready[name]; ok {
				carried = append(carried, c)
			} else if !g.given[name] {
				missing = name
			}
		}
		if missing == "" {
			return carried, "", true
		}
		if lacking == "" {
			lacking = missing
		}
	}
	return nil, lacking, open
}

// hopByHop are headers that control the transfer of a request or are set elsewhere. They are never
// parameters.
var hopByHop = map[string]bool{
	"Accept": true, "Accept-Encoding": true, "Authorization": true, "Connection": true, "Content-Length": true, "Content-Type": true, "Cookie": true,
	"Expect": true, "Forwarded": true, "Host": true, "Keep-Alive": true, "Proxy-Authorization": true, "Proxy-Connection": true, "Te": true, "Trailer": true,
	"Transfer-Encoding": true, "Upgrade": true, "Via": true, "X-Forwarded-For": true, "X-Forwarded-Host": true, "X-Forwarded-Proto": true, "X-Real-Ip": true,
}

// sent returns the headers of each request. That of Auth has no value yet.
func (c *Config) sent() map[string]string {
	if c.AuthHeader == "" {
		return c.Headers
	}
	all := maps.Clone(c.Headers)
	if all == nil {
		all = make(map[string]string, 1)
	}
	all[c.AuthHeader] = ""
	return all
}
