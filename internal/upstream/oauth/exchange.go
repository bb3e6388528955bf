package oauth

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Token types (RFC 8693, section 3).
const (
	tokenTypeAccess = "urn:ietf:params:oauth:token-type:access_token" //nolint:gosec // no secret: the name of a type
	tokenTypeJWT    = "urn:ietf:params:oauth:token-type:jwt"          //nolint:gosec // no secret: the name of a type
)

// errSameToken means that an exchange returned the token that was sent.
var errSameToken = errors.New("the authorization server answered with the token that was to be exchanged")

// Exchange exchanges subject, the access token of another client, for a token for resource or
// audience (RFC 8693). One of them may be "". subject is sent only to the token endpoint. A refusal
// is a *[Refused]. A response with the subject's own token is an error, because that token is not
// meant for the server that would receive it.
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

// NeedsPerson reports whether a refusal means that the person must act first, for example consent.
func NeedsPerson(err error) bool {
	r, ok := errors.AsType[*Refused](err)
	return ok && slices.Contains([]string{"consent_required", "interaction_required", "login_required"}, r.Code)
}
