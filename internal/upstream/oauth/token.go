package oauth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/callyard/callyard/internal/kit/notnull"
	"github.com/callyard/callyard/internal/kit/urls"
)

// Token is an access token.
type Token struct {
	Access  string    `json:"access"`
	Expires time.Time `json:"expires,omitzero"` // zero if the server did not specify it
	Scopes  []string  `json:"scopes,omitempty"` // nil means the requested scopes
	refresh string
}

// String hides the token.
func (Token) String() string { return "[an access token]" }

// GoString hides the token.
func (t Token) GoString() string { return t.String() }

// Refused is an error response of an authorization server.
type Refused struct {
	Code   string // a registered error code; "" for any other code
	Status int    // HTTP status; 0 if the response came through a redirect
}

// Error returns a sentence without any text of the server.
func (r *Refused) Error() string {
	switch {
	case r.Code != "":
		return "the authorization server refused: " + r.Code
	case r.Status != 0:
		return fmt.Sprintf("the authorization server answered with HTTP status %d", r.Status)
	}
	return "the authorization server refused"
}

// ErrOtherServer means that a grant belongs to another authorization server than the configured
// one, to which alone the configured secret may be sent.
var ErrOtherServer = errors.New("the grant is of another authorization server than the configured one")

// Ended reports whether the error of a refresh means that the grant has become useless. The error
// invalid_client means this only for a client that the server registered itself, because the
// operator can repair a configured client.
func (c *Client) Ended(err error, g *Grant) bool {
	r, ok := errors.AsType[*Refused](err)
	if !ok {
		return false
	}
	return r.Code == "invalid_grant" || r.Code == "invalid_client" && g.Client.ID != c.ID && g.Client.ID != c.MetadataURL
}

// codes are the error codes that are repeated in errors: those of the OAuth parameters registry
// that these flows can produce. Any other text could be an attempt to forge log entries.
var codes = []string{
	"access_denied", "consent_required", "insufficient_scope", "interaction_required", "invalid_client", "invalid_client_metadata", "invalid_grant",
	"invalid_redirect_uri", "invalid_request", "invalid_scope", "invalid_target", "invalid_token", "login_required", "server_error",
	"temporarily_unavailable", "unauthorized_client", "unsupported_grant_type", "unsupported_response_type", "unsupported_token_type",
}

func errorCode(text string) string {
	if slices.Contains(codes, text) {
		return text
	}
	return ""
}

// visible reports whether a text is valid in a header.
func visible(s string) bool {
	return len(s) <= 64<<10 && !strings.ContainsFunc(s, func(c rune) bool { return c <= ' ' || c >= 0x7f })
}

// Credentials obtains a token for the client itself (RFC 6749, section 4.4). resource and audience
// may be "".
func (c *Client) Credentials(ctx context.Context, endpoint string, reg Registration, wanted []string, resource, audience string) (*Token, error) {
	form := url.Values{"grant_type": {"client_credentials"}}
	set(form, "scope", strings.Join(wanted, " "))
	set(form, "resource", resource)
	set(form, "audience", audience)
	return c.token(ctx, reg, endpoint, form)
}

func set(form url.Values, key, value string) {
	if value != "" {
		form.Set(key, value)
	}
}

// authenticate adds the client authentication to a request.
func (c *Client) authenticate(reg Registration, endpoint string, form url.Values, h http.Header) error {
	secret := reg.Secret
	if reg.Method == methodKey || secret == "" && (reg.Method == methodBasic || reg.Method == methodPost) {
		// The configured credential may be sent only to the configured server, even if an older
		// grant names another one.
		if reg.ID != c.ID || c.Issuer != "" && !sameIssuer(c.Issuer, reg.Issuer) {
			return ErrOtherServer
		}
	}
	if secret == "" && c.Secret != nil && (reg.Method == methodBasic || reg.Method == methodPost) {
		var err error
		if secret, err = c.Secret(); err != nil {
			return err
		}
	}
	switch reg.Method {
	case methodBasic:
		// RFC 6749, section 2.3.1: both are form-encoded first.
		r := http.Request{Header: h}
		r.SetBasicAuth(url.QueryEscape(reg.ID), url.QueryEscape(secret))
	case methodPost:
		form.Set("client_id", reg.ID)
		form.Set("client_secret", secret)
	case methodKey:
		assertion, err := c.Key.assertion(reg.ID, endpoint, reg.Issuer)
		if err != nil {
			return err
		}
		form.Set("client_id", reg.ID)
		form.Set("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer")
		form.Set("client_assertion", assertion)
	default:
		form.Set("client_id", reg.ID)
	}
	return nil
}

// post sends a form to an endpoint of the authorization server and reads the response.
func (c *Client) post(ctx context.Context, reg Registration, endpoint string, form url.Values) (status int, text []byte, err error) {
	if _, ok := urls.Secure(endpoint); !ok {
		return 0, nil, errors.New("the endpoint of the authorization server is not an https URL")
	}
	h := make(http.Header)
	if err := c.authenticate(reg, endpoint, form, h); err != nil {
		return 0, nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint, strings.NewReader(form.Encode()))
	if err != nil {
		return 0, nil, errors.New("the endpoint of the authorization server is not valid")
	}
	h.Set("Content-Type", "application/x-www-form-urlencoded")
	h.Set("Accept", "application/json")
	req.Header = h
	resp, err := c.HTTP.Do(req)
	if err != nil {
		return 0, nil, fmt.Errorf("asking the authorization server: %w", urls.WithoutURL(err))
	}
	defer resp.Body.Close()
	if text, err = io.ReadAll(io.LimitReader(resp.Body, maxDocument+1)); err != nil || len(text) > maxDocument {
		return 0, nil, errors.New("the answer of the authorization server cannot be read")
	}
	return resp.StatusCode, text, nil
}

// token requests a token.
func (c *Client) token(ctx context.Context, reg Registration, endpoint string, form url.Values) (*Token, error) {
	status, text, err := c.post(ctx, reg, endpoint, form)
	if err != nil {
		return nil, err
	}
	return readToken(status, text, time.Now())
}

// readToken parses the response of a token endpoint (RFC 6749, sections 5.1 and 5.2).
func readToken(status int, text []byte, now time.Time) (*Token, error) {
	var a struct {
		Error   string          `json:"error"`
		Access  string          `json:"access_token"`
		Type    string          `json:"token_type"`
		Expires json.RawMessage `json:"expires_in"`
		Refresh string          `json:"refresh_token"`
		Scope   *string         `json:"scope"`
	}
	fault := json.Unmarshal(text, &a)
	switch {
	case status != http.StatusOK || a.Error != "":
		return nil, &Refused{Code: errorCode(a.Error), Status: status}
	case fault != nil:
		return nil, errors.New("the answer of the authorization server is not valid")
	case a.Access == "" || !visible(a.Access) || !visible(a.Refresh):
		return nil, errors.New("the answer of the authorization server has no token that can be sent")
	case !strings.EqualFold(a.Type, "bearer"):
		return nil, errors.New("the authorization server issued a token that is not a bearer token")
	}
	t := &Token{Access: a.Access, refresh: a.Refresh}
	// Some servers send the number as a string.
	var seconds int64
	if json.Unmarshal([]byte(strings.Trim(string(a.Expires), `"`)), &seconds) == nil && seconds > 0 {
		t.Expires = now.Add(time.Duration(min(seconds, 10*365*24*3600)) * time.Second)
	}
	if a.Scope != nil {
		t.Scopes = notnull.List(scopes(*a.Scope))
	}
	return t, nil
}

// Revoke revokes a grant at the authorization server if it supports that (RFC 7009): the refresh
// token, or the access token if there is no refresh token.
func (c *Client) Revoke(ctx context.Context, g *Grant, t *Token) error {
	form := url.Values{"token": {g.Refresh}, "token_type_hint": {"refresh_token"}}
	if g.Refresh == "" && t != nil {
		form = url.Values{"token": {t.Access}, "token_type_hint": {"access_token"}}
	}
	if g.Revocation == "" || form.Get("token") == "" {
		return nil
	}
	status, _, err := c.post(ctx, g.Client, g.Revocation, form)
	if err == nil && status != http.StatusOK {
		err = &Refused{Status: status}
	}
	return err
}
