package authserver

import (
	"cmp"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/callyard/callyard/internal/kit/truncate"
	"github.com/callyard/callyard/pkg/schema"
)

const (
	grantCode       = "authorization_code"
	grantRefresh    = "refresh_token"
	accessTokenType = "at+jwt"
	maxForm         = 16 << 10
)

// claims holds the claims of an access token (RFC 9068).
type claims struct {
	Issuer   string   `json:"iss"`
	Subject  string   `json:"sub"`
	Audience string   `json:"aud"`
	Client   string   `json:"client_id"`
	Expires  int64    `json:"exp"`
	Issued   int64    `json:"iat"`
	ID       string   `json:"jti"`
	Scope    string   `json:"scope"`
	Owner    string   `json:"owner"`
	Groups   []string `json:"groups,omitempty"`
	Tenant   string   `json:"urn:callyard:tenant,omitempty"` // scope.TenantClaim
	Grant    string   `json:"urn:callyard:grant"`            // scope.GrantClaim
}

// sign returns a signed access token and its lifetime in seconds.
func (s *Server) sign(ring *keySnapshot, i *issued) (string, int64, error) {
	now, p := s.o.Now(), &i.grant.Person
	ends := s.tokenEnds(i.grant, now)
	id := make([]byte, 16)
	_, _ = rand.Read(id) // it never fails
	c := claims{
		Issuer: s.o.Issuer, Subject: p.Name, Audience: i.grant.Resource, Client: i.grant.Client, Expires: ends.Unix(), Issued: now.Unix(),
		ID: base64.RawURLEncoding.EncodeToString(id), Scope: strings.Join(i.scopes, " "), Owner: cmp.Or(p.Owner, p.Name), Groups: p.Groups,
		Grant: hex.EncodeToString(i.id),
	}
	if !p.Tenant.Is(schema.DefaultTenant) {
		c.Tenant = string(p.Tenant)
	}
	text, err := json.Marshal(c)
	if err != nil {
		return "", 0, err
	}
	signed, err := ring.signer.Sign(text)
	if err != nil {
		return "", 0, err
	}
	token, err := signed.CompactSerialize()
	return token, max(0, int64(ends.Sub(now)/time.Second)), err
}

// answer is the response of the token endpoint.
type answer struct {
	Access  string `json:"access_token"`
	Type    string `json:"token_type"`
	Expires int64  `json:"expires_in"`
	Scope   string `json:"scope"`
	Refresh string `json:"refresh_token"`
}

// ServeToken serves the token endpoint.
func (s *Server) ServeToken(w http.ResponseWriter, r *http.Request) {
	setNoStore(w, r)
	form, client, err := s.form(w, r)
	if err != nil {
		s.fail(w, err)
		return
	}
	q := redemption{
		client: client, code: form.Get("code"), redirect: form.Get("redirect_uri"), verifier: form.Get("code_verifier"),
		refresh: form.Get("refresh_token"), resource: form.Get("resource"), scope: form.Get("scope"),
	}
	var got *issued
	switch form.Get("grant_type") {
	case grantCode:
		got, err = s.redeem(r.Context(), &q)
	case grantRefresh:
		got, err = s.renew(r.Context(), &q)
	default:
		err = &fault{badGrantType, "grant_type must be authorization_code or refresh_token"}
	}
	if err != nil {
		s.fail(w, err)
		return
	}
	ring, err := s.ring.get(r.Context())
	if err != nil {
		s.fail(w, err)
		return
	}
	a := answer{Type: "Bearer", Scope: strings.Join(got.scopes, " "), Refresh: got.refresh}
	if a.Access, a.Expires, err = s.sign(ring, got); err != nil {
		s.fail(w, err)
		return
	}
	text, err := json.Marshal(a) //nolint:gosec // a token is what the client asked for
	if err != nil {
		s.fail(w, err)
		return
	}
	_, _ = w.Write(text)
}

// ServeRevoke serves the revocation endpoint (RFC 7009). Revoking a refresh token also ends its
// access tokens.
func (s *Server) ServeRevoke(w http.ResponseWriter, r *http.Request) {
	setNoStore(w, r)
	form, client, err := s.form(w, r)
	if err == nil {
		err = s.revoke(r.Context(), client, form.Get("token"))
	}
	if err != nil {
		s.fail(w, err)
		return
	}
	w.WriteHeader(http.StatusOK)
}

// setNoStore sets the headers of a response that must not be stored.
func setNoStore(w http.ResponseWriter, r *http.Request) {
	open(w, r)
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Pragma", "no-cache")
}

// form parses a form and identifies its client. Query parameters are ignored.
func (s *Server) form(w http.ResponseWriter, r *http.Request) (url.Values, *caller, error) {
	bad := func(reason string) (url.Values, *caller, error) { return nil, nil, &fault{badRequest, reason} }
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != "application/x-www-form-urlencoded" {
		return bad("the request is not a form")
	}
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxForm))
	if err != nil {
		return bad("the form is longer than 16 KiB, or incomplete")
	}
	form, err := url.ParseQuery(string(text))
	if err != nil {
		return bad("the form cannot be read")
	}
	for name, values := range form {
		if len(values) != 1 || !utf8.ValidString(values[0]) {
			return bad("the field " + strings.ToValidUTF8(truncate.Head(name, 40), "?") + " occurs twice, or is not text")
		}
	}
	user, password, basic := r.BasicAuth()
	who, err := s.authenticate(r.Context(), form, user, password, basic)
	return form, who, err
}

// fail writes an error response.
func (s *Server) fail(w http.ResponseWriter, err error) {
	status, f := http.StatusBadRequest, (*fault)(nil)
	if !errors.As(err, &f) {
		s.o.Log.Error("the authorization server failed", "error", err)
		f = &fault{unavailableNow, "the authorization server cannot answer at the moment"}
	}
	switch f.code {
	case badClient:
		status = http.StatusUnauthorized
		w.Header().Set("WWW-Authenticate", `Basic realm="callyard"`)
	case unavailableNow:
		status = http.StatusServiceUnavailable
	}
	w.Header().Set("Cache-Control", "no-store")
	text, err := json.Marshal(map[string]string{"error": f.code, "error_description": f.reason})
	if err != nil {
		text = []byte(`{"error":"server_error"}`)
	}
	w.WriteHeader(status)
	_, _ = w.Write(text)
}
