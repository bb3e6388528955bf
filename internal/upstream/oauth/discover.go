package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/callyard/callyard/internal/kit/urls"
)

// Metadata is the metadata of an authorization server (RFC 8414).
type Metadata = oauthex.AuthServerMeta

// Challenge is the WWW-Authenticate challenge of an MCP server.
type Challenge struct {
	Metadata string   // address of its protected resource metadata; "" if it names none
	Scopes   []string // required by the request
	Error    string   // such as insufficient_scope
}

// ParseChallenge parses the WWW-Authenticate headers of a response. It ignores invalid parts.
func ParseChallenge(h http.Header) Challenge {
	var c Challenge
	for _, line := range h.Values("WWW-Authenticate") {
		all, err := oauthex.ParseWWWAuthenticate([]string{line})
		if err != nil {
			continue
		}
		for _, one := range all {
			if c.Metadata == "" {
				c.Metadata = one.Params["resource_metadata"]
			}
			if one.Scheme != "bearer" {
				continue
			}
			if c.Scopes == nil {
				c.Scopes = scopes(one.Params["scope"])
			}
			if c.Error == "" {
				c.Error = errorCode(one.Params["error"])
			}
		}
	}
	return c
}

// maxScopes limits the scopes that a server can make a person consent to.
const maxScopes = 100

// scopes splits a list of scopes (RFC 6749, section 3.3). It returns nil if the list is invalid.
func scopes(text string) []string {
	list := strings.Fields(text)
	if len(list) > maxScopes || slices.ContainsFunc(list, func(s string) bool {
		return len(s) > 512 || strings.ContainsFunc(s, func(c rune) bool { return c <= ' ' || c >= 0x7f || c == '"' || c == '\\' })
	}) {
		return nil
	}
	return list
}

// Resource is an MCP server from the view of an OAuth client.
type Resource struct {
	ID     string   // the resource indicator (RFC 8707)
	Scopes []string // scopes to request; nil if unknown
	Server *Metadata
}

// Discover finds the authorization server of the MCP server at address, from the challenge of its
// refusal. issuer is the configured issuer, which the metadata must name; if empty, Discover uses
// the first issuer in the metadata.
func Discover(ctx context.Context, client *http.Client, address, issuer string, c Challenge) (*Resource, error) {
	about, err := protectedResource(ctx, client, address, c.Metadata)
	if err != nil {
		return nil, err
	}
	switch servers := about.AuthorizationServers; {
	case len(servers) == 0:
		return nil, errors.New("the protected resource metadata names no authorization server")
	case issuer == "":
		issuer = servers[0]
	case !slices.ContainsFunc(servers, func(s string) bool { return sameIssuer(s, issuer) }):
		return nil, errors.New("the protected resource metadata does not name the configured issuer")
	}
	server, err := AuthorizationServer(ctx, client, issuer)
	if err != nil {
		return nil, err
	}
	r := &Resource{ID: about.Resource, Scopes: c.Scopes, Server: server}
	if len(r.Scopes) == 0 {
		r.Scopes = scopes(strings.Join(about.ScopesSupported, " "))
	}
	return r, nil
}

// protectedResource reads protected resource metadata (RFC 9728).
func protectedResource(ctx context.Context, client *http.Client, address, named string) (*oauthex.ProtectedResourceMetadata, error) {
	at, err := url.Parse(address)
	if err != nil {
		return nil, errors.New("the address of the server is not valid")
	}
	at.User, at.Fragment = nil, ""
	resource := at.String()
	root := *at
	root.Path, root.RawPath, root.RawQuery = "", "", ""
	type place struct{ address, resource string }
	var places []place
	if named != "" {
		places = []place{{named, resource}}
	} else {
		const suffix = "/.well-known/oauth-protected-resource"
		if strings.Trim(at.Path, "/") != "" {
			inserted := *at
			inserted.Path, inserted.RawPath = suffix+"/"+strings.TrimLeft(at.Path, "/"), ""
			places = append(places, place{inserted.String(), resource})
		} else {
			root.Path = at.Path // "/" is part of the identifier
		}
		first := root
		first.Path = suffix
		places = append(places, place{first.String(), root.String()})
	}
	for _, p := range places {
		about := &oauthex.ProtectedResourceMetadata{}
		err := document(ctx, client, p.address, about)
		switch {
		case errors.Is(err, errAbsent):
			continue
		case err != nil:
			return nil, fmt.Errorf("reading the protected resource metadata: %w", err)
		case about.Resource != p.resource:
			return nil, errors.New("the protected resource metadata is that of another resource")
		}
		return about, nil
	}
	return nil, errors.New("the server has no protected resource metadata")
}

// sameIssuer compares two issuers and ignores a slash at the end.
func sameIssuer(a, b string) bool { return strings.TrimSuffix(a, "/") == strings.TrimSuffix(b, "/") }

// AuthorizationServer reads the metadata of an authorization server from the locations listed in
// the MCP specification.
func AuthorizationServer(ctx context.Context, client *http.Client, issuer string) (*Metadata, error) {
	at, ok := urls.Secure(issuer)
	if !ok || at.RawQuery != "" {
		return nil, errors.New("the issuer is not an https URL")
	}
	const ours, theirs = "/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"
	path := strings.Trim(at.Path, "/")
	paths := []string{ours, theirs}
	if path != "" {
		paths = []string{ours + "/" + path, theirs + "/" + path, "/" + path + theirs}
	}
	for _, p := range paths {
		place := *at
		place.Path, place.RawPath = p, ""
		m := &Metadata{}
		err := document(ctx, client, place.String(), m)
		switch {
		case errors.Is(err, errAbsent):
			continue
		case err != nil:
			return nil, fmt.Errorf("reading the metadata of the authorization server: %w", err)
		case !sameIssuer(m.Issuer, issuer):
			return nil, errors.New("the metadata of the authorization server is that of another issuer")
		}
		for name, address := range map[string]string{
			"authorization_endpoint": m.AuthorizationEndpoint, "token_endpoint": m.TokenEndpoint,
			"registration_endpoint": m.RegistrationEndpoint, "revocation_endpoint": m.RevocationEndpoint,
		} {
			if _, ok := urls.Secure(address); address != "" && !ok {
				return nil, fmt.Errorf("the %s of the authorization server is not an https URL", name)
			}
		}
		if m.TokenEndpoint == "" {
			return nil, errors.New("the metadata of the authorization server has no token_endpoint")
		}
		return m, nil
	}
	return nil, errors.New("the authorization server has no metadata")
}
