package oauth

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"strings"
	"time"
)

// Types of tokens (RFC 8693, section 3).
const (
	tokenTypeAccess = "urn:ietf:params:oauth:token-type:access_token" //nolint:gosec // no secret: the name of a type
	tokenTypeJWT    = "urn:ietf:params:oauth:token-type:jwt"          //nolint:gosec // no secret: the name of a type
)

// errSameToken means that an exchange gave back what was sent.
var errSameToken = errors.New("the authorization server answered with the token that was to be exchanged")

// Exchange exchanges subject, the access token of somebody else, for one that is for resource
// or audience (RFC 8693): one of them may be "". subject goes to the token endpoint alone. A
// refusal is a *[Refused]. An answer with the subject's own token is an error: it is not for
// the server that gets the result.
func (c *Client) Exchange(ctx context.Context, m *Metadata, subject, resource, audience string, wanted []string) (*Token, error) {
	reg, err := c.Register(ctx, m)
	if err != nil {
		return nil, err
	}
	form := url.Values{
		"grant_type":    {"urn:ietf:params:oauth:grant-type:token-exchange"},
		"subject_token": {subject}, "subject_token_type": {tokenTypeAccess}, "requested_token_type": {tokenTypeAccess},
	}
	set(form, "scope", strings.Join(wanted, " "))
	set(form, "resource", resource)
	set(form, "audience", audience)
	status, text, err := c.post(ctx, reg, m.TokenEndpoint, form)
	if err != nil {
		return nil, err
	}
	t, err := readToken(status, text, time.Now())
	if err != nil {
		return nil, err
	}
	var kind struct {
		Issued string `json:"issued_token_type"`
	}
	if json.Unmarshal(text, &kind) != nil || kind.Issued != "" && kind.Issued != tokenTypeAccess && kind.Issued != tokenTypeJWT {
		return nil, errors.New("the authorization server issued a token that is not an access token")
	}
	if t.Access == subject {
		return nil, errSameToken
	}
	return t, nil
}

// NeedsPerson reports whether a refusal says that the person has to do something first, such
// as to agree.
func NeedsPerson(err error) bool {
	var r *Refused
	if !errors.As(err, &r) {
		return false
	}
	switch r.Code {
	case "consent_required", "interaction_required", "login_required":
		return true
	}
	return false
}
