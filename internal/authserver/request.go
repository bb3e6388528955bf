package authserver

import (
	"context"
	"encoding/base64"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/callyard/callyard/internal/authn/scope"
	"github.com/callyard/callyard/pkg/schema"
)

// Error codes of RFC 6749, 8707 and OpenID Connect in responses.
const (
	badRequest     = "invalid_request"
	badResponse    = "unsupported_response_type"
	badScope       = "invalid_scope"
	badTarget      = "invalid_target"
	badGrant       = "invalid_grant"
	badGrantType   = "unsupported_grant_type"
	badClient      = "invalid_client"
	accessDenied   = "access_denied"
	unavailableNow = "temporarily_unavailable"
)

// Request is a valid authorization request.
type Request struct {
	Client *Client
	// Redirect is the redirect URI. State is returned with it.
	Redirect, State string
	Challenge       string
	Resource        string
	// Scopes lists the scopes that the person would grant.
	Scopes []string
}

// Refusal is the reason why a request cannot be granted. It is shown to the person.
type Refusal struct {
	Text string
	// Back is the address that reports the refusal to the client. It is "" if the client is not
	// known or has not registered the address. A person must follow it.
	Back string
}

// Error returns the text for the person.
func (r *Refusal) Error() string { return r.Text }

// parameters lists the evaluated parameters of an authorization request. Each may occur once.
var parameters = []string{"response_type", "client_id", "redirect_uri", "scope", "state", "code_challenge", "code_challenge_method", "resource", "response_mode", "request", "request_uri"}

const (
	maxState  = 1024
	maxScopes = 50
)

// Ask validates an authorization request of a person. The error is a *Refusal if the request is
// invalid, else a *schema.Error.
func (s *Server) Ask(ctx context.Context, q url.Values, p *Person) (*Request, error) {
	for _, name := range parameters {
		if v := q[name]; len(v) > 1 || len(v) == 1 && !utf8.ValidString(v[0]) {
			return nil, &Refusal{Text: "The program that sent you here gave the parameter " + name + " twice, or with characters that are not text."}
		}
	}
	if q.Get("client_id") == "" {
		return nil, &Refusal{Text: "The program that sent you here did not say who it is (client_id)."}
	}
	c, err := s.client(ctx, q.Get("client_id"))
	if err != nil {
		if schema.KindOf(err) == schema.KindInvalidRequest {
			return nil, &Refusal{Text: schema.AsError(err).Detail}
		}
		return nil, err
	}
	r := &Request{Client: c, Redirect: q.Get("redirect_uri"), State: q.Get("state"), Challenge: q.Get("code_challenge"), Resource: q.Get("resource")}
	if !c.allows(r.Redirect) {
		return nil, &Refusal{Text: "The program that sent you here wants you to return to an address that it has not registered (redirect_uri)."}
	}
	if len(r.State) > maxState {
		r.State = ""
		return nil, s.refuse(r, badRequest, "state is longer than 1024 bytes")
	}
	for _, f := range []struct {
		wrong        bool
		code, reason string
	}{
		{q.Has("request") || q.Has("request_uri"), badRequest, "request objects are not supported"},
		{q.Get("response_type") != "code", badResponse, "response_type must be code"},
		{q.Has("response_mode") && q.Get("response_mode") != "query", badRequest, "response_mode must be query"},
		{q.Get("code_challenge_method") != "S256", badRequest, "PKCE with code_challenge_method S256 is required"},
		{!goodChallenge(r.Challenge), badRequest, "code_challenge is missing or not one of S256"},
		{!s.protects(r.Resource), badTarget, "resource is missing, or not the address of an MCP endpoint of this installation"},
	} {
		if f.wrong {
			return nil, s.refuse(r, f.code, f.reason)
		}
	}
	if r.Scopes = s.grantable(q.Get("scope"), p); len(r.Scopes) == 0 {
		return nil, s.refuse(r, badScope, "none of the requested scopes can be granted by you")
	}
	return r, nil
}

func (s *Server) refuse(r *Request, code, reason string) *Refusal {
	return &Refusal{
		Text: "The request of the program that sent you here cannot be granted: " + reason + ".",
		Back: s.answer(r, "error", code, "error_description", reason),
	}
}

// Deny records a denial and returns the address to redirect to.
func (s *Server) Deny(ctx context.Context, r *Request, p *Person) string {
	if s.o.Record != nil {
		s.o.Record(context.WithoutCancel(ctx), &Event{Kind: Denied, Client: r.Client.ID, Resource: r.Resource, Scopes: r.Scopes, Person: *p, By: p, Channel: ChannelWeb})
	}
	return s.answer(r, "error", accessDenied, "error_description", "the person denied access")
}

// answer returns the redirect URI with the parameters and the issuer (RFC 9207).
func (s *Server) answer(r *Request, pairs ...string) string {
	q := url.Values{"iss": {s.o.Issuer}}
	if r.State != "" {
		q.Set("state", r.State)
	}
	for i := 0; i < len(pairs); i += 2 {
		q.Set(pairs[i], pairs[i+1])
	}
	mark := "?"
	if strings.Contains(r.Redirect, "?") {
		mark = "&"
	}
	return r.Redirect + mark + q.Encode()
}

// goodChallenge reports whether a challenge is a SHA-256 digest in base64url.
func goodChallenge(c string) bool {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(c)
	return err == nil && len(raw) == 32
}

// protects reports whether a resource is a configured address, or a path below one.
func (s *Server) protects(resource string) bool {
	if len(resource) > maxRedirect || strings.ContainsAny(resource, "?#%\\\"<>") || strings.ContainsFunc(resource, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return false
	}
	return slices.ContainsFunc(s.o.Resources, func(base string) bool {
		if resource == base {
			return true
		}
		path, below := strings.CutPrefix(resource, base+"/")
		return below && !slices.ContainsFunc(strings.Split(path, "/"), func(part string) bool { return part == "" || part == "." || part == ".." })
	})
}

// usual lists the default scopes.
const usual = scope.ReadTools + " " + scope.CallTools

// grantable returns the requested scopes that the person can grant, in the requested order. Others,
// such as offline_access, are omitted. The token response lists the granted scopes.
func (s *Server) grantable(asked string, p *Person) []string {
	if asked == "" {
		asked = usual
	}
	admin := s.Administers(p.Groups)
	var list []string
	for one := range strings.FieldsSeq(asked) {
		if slices.Contains(list, one) || len(list) == maxScopes {
			continue
		}
		set, err := scope.Parse([]string{one})
		if err == nil && (set.Within(&s.scopes) || one == scope.Admin && admin) {
			list = append(list, one)
		}
	}
	return list
}
