package oauth

import (
	"context"
	"crypto/rand"
	"errors"
	"net/url"
	"slices"

	"golang.org/x/oauth2"
)

// offline is the scope that requests refresh tokens, if a server supports it.
const offline = "offline_access"

// Grant holds everything needed to refresh a token. It contains secrets.
type Grant struct {
	Client        Registration `json:"client"`
	TokenEndpoint string       `json:"token_endpoint"`
	Revocation    string       `json:"revocation_endpoint,omitempty"`
	Resource      string       `json:"resource,omitempty"`
	Scopes        []string     `json:"scopes,omitempty"`
	Refresh       string       `json:"refresh,omitempty"` // "" if the token cannot be refreshed
}

// String hides the secrets.
func (Grant) String() string { return "[a grant]" }

// GoString hides the secrets.
func (g Grant) GoString() string { return g.String() }

// Request is an authorization request in progress. It holds secrets and must be bound to its user.
type Request struct {
	URL      string `json:"url"` // the address to open in the browser
	State    string `json:"state"`
	Verifier string `json:"verifier"`
	Issued   bool   `json:"iss,omitempty"` // the response must name the issuer
	Grant    Grant  `json:"grant"`
}

// String hides the secrets.
func (Request) String() string { return "[an authorization request]" }

// GoString hides the secrets.
func (r Request) GoString() string { return r.String() }

// Begin registers at the authorization server and creates an authorization request with PKCE.
func (c *Client) Begin(ctx context.Context, r *Resource) (*Request, error) {
	m := r.Server
	switch {
	case m.AuthorizationEndpoint == "":
		return nil, errors.New("the authorization server has no authorization_endpoint")
	case !slices.Contains(m.CodeChallengeMethodsSupported, "S256"):
		return nil, errors.New("the authorization server does not support PKCE with S256")
	}
	registered, err := c.Register(ctx, m)
	if err != nil {
		return nil, err
	}
	wanted := slices.Clone(r.Scopes)
	if slices.Contains(m.ScopesSupported, offline) && !slices.Contains(wanted, offline) {
		wanted = append(wanted, offline)
	}
	req := &Request{
		State: rand.Text() + rand.Text(), Verifier: oauth2.GenerateVerifier(), Issued: m.AuthorizationResponseIssParameterSupported,
		Grant: Grant{Client: registered, TokenEndpoint: m.TokenEndpoint, Revocation: m.RevocationEndpoint, Resource: r.ID, Scopes: wanted},
	}
	config := oauth2.Config{ClientID: registered.ID, Endpoint: oauth2.Endpoint{AuthURL: m.AuthorizationEndpoint}, RedirectURL: c.RedirectURL, Scopes: wanted}
	req.URL = config.AuthCodeURL(req.State, oauth2.S256ChallengeOption(req.Verifier), oauth2.SetAuthURLParam("resource", r.ID))
	return req, nil
}

// Finish redeems the response to an authorization request, which is the query of the redirect.
func (c *Client) Finish(ctx context.Context, req *Request, answer url.Values) (*Token, *Grant, error) {
	one := func(key string) string {
		if v := answer[key]; len(v) == 1 {
			return v[0]
		}
		return ""
	}
	if one("state") != req.State || req.State == "" {
		return nil, nil, errors.New("the answer is that to another request")
	}
	issuer, named := answer["iss"]
	switch {
	case req.Issued && !named:
		return nil, nil, errors.New("the answer does not name its issuer")
	case named && (len(issuer) != 1 || issuer[0] != req.Grant.Client.Issuer):
		return nil, nil, errors.New("the answer is that of another issuer")
	}
	if _, failed := answer["error"]; failed {
		return nil, nil, &Refused{Code: errorCode(one("error"))}
	}
	code := one("code")
	if code == "" {
		return nil, nil, errors.New("the answer has no code")
	}
	g := req.Grant
	t, err := c.token(ctx, g.Client, g.TokenEndpoint, url.Values{
		"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {c.RedirectURL}, "code_verifier": {req.Verifier}, "resource": {g.Resource},
	})
	if err != nil {
		return nil, nil, err
	}
	g.keep(t)
	return t, &g, nil
}

// Refresh redeems the refresh token of a grant. The returned grant replaces the old one, because a
// server that rotates refresh tokens accepts the old one only once.
func (c *Client) Refresh(ctx context.Context, g *Grant) (*Token, *Grant, error) {
	if g.Refresh == "" {
		return nil, nil, &Refused{Code: "invalid_grant"}
	}
	form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {g.Refresh}}
	set(form, "resource", g.Resource)
	t, err := c.token(ctx, g.Client, g.TokenEndpoint, form)
	if err != nil {
		return nil, nil, err
	}
	next := *g
	next.keep(t)
	return t, &next, nil
}

// keep copies the parts that outlive the token into the grant.
func (g *Grant) keep(t *Token) {
	if t.refresh != "" {
		g.Refresh = t.refresh
	}
	if t.Scopes != nil {
		g.Scopes = t.Scopes
	}
}
