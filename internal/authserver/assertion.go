package authserver

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/url"
	"slices"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/json"

	"github.com/callyard/callyard/internal/authn/token"
	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/internal/store/oauthtable"
	"github.com/callyard/callyard/pkg/bus"
)

const (
	assertionType = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
	maxAssertion  = 8 << 10
	// assertionLife is the maximum remaining lifetime of an assertion. assertionSkew is the maximum
	// clock difference between a client and this server. The jti is remembered for longer than
	// both together.
	assertionLife = 10 * time.Minute
	assertionSkew = 30 * time.Second
	maxAssertID   = 256
)

// This does not compile unless the table remembers assertions for as long as they are valid.
const _ = uint(oauthtable.AssertionsKept - assertionLife - 2*assertionSkew)

// forbiddenHeaders would select another key, or rules that differ from the client's.
var forbiddenHeaders = []jose.HeaderKey{"jku", "x5u", "x5c", "crit", "b64", "zip", "cty", "enc", "epk"}

// assertionTypes lists the accepted values of typ. A missing typ is also accepted.
var assertionTypes = []string{"jwt", "client-authentication+jwt"}

// assertion is a JWT by which a client authenticates (RFC 7523, section 3). Its claims must not be
// trusted before [Server.verify] has returned nil.
type assertion struct {
	client string
	id     string // jti
	token  *jose.JSONWebSignature
}

var errAssertion = &fault{badClient, "the client assertion is not valid"}

// readAssertion parses the assertion of an untrusted request. It returns nil if there is none.
func (s *Server) readAssertion(form url.Values) (*assertion, error) {
	raw := form.Get("client_assertion")
	switch {
	case raw == "" && !form.Has("client_assertion_type"):
		return nil, nil
	case form.Get("client_assertion_type") != assertionType:
		return nil, &fault{badRequest, "client_assertion_type must be " + assertionType}
	case raw == "" || len(raw) > maxAssertion:
		return nil, errAssertion
	}
	t, err := jose.ParseSignedCompact(raw, token.Algorithms)
	if err != nil || len(t.Signatures) != 1 {
		return nil, errAssertion
	}
	h := &t.Signatures[0].Header
	typ, has := h.ExtraHeaders[jose.HeaderType]
	text, _ := typ.(string)
	if h.JSONWebKey != nil || has && !slices.Contains(assertionTypes, settings.TokenType(text)) ||
		slices.ContainsFunc(forbiddenHeaders, func(k jose.HeaderKey) bool { _, has := h.ExtraHeaders[k]; return has }) {
		return nil, errAssertion
	}
	var c struct {
		Issuer   string   `json:"iss"`
		Subject  string   `json:"sub"`
		ID       string   `json:"jti"`
		Audience any      `json:"aud"`
		Expires  float64  `json:"exp"`
		Before   *float64 `json:"nbf"`
		Issued   *float64 `json:"iat"`
	}
	now := s.o.Now()
	if err := json.Unmarshal(t.UnsafePayloadWithoutVerification(), &c); err != nil {
		return nil, errAssertion
	}
	future := func(at *float64) bool { return at != nil && !(*at <= unix(now.Add(assertionSkew))) }
	switch {
	case c.Issuer == "" || c.Issuer != c.Subject || c.ID == "" || len(c.ID) > maxAssertID || !s.isAudience(c.Audience):
		return nil, errAssertion
	case !(c.Expires > unix(now.Add(-assertionSkew)) && c.Expires <= unix(now.Add(assertionLife+assertionSkew))) || future(c.Before) || future(c.Issued):
		return nil, errAssertion
	}
	return &assertion{client: c.Issuer, id: c.ID, token: t}, nil
}

func unix(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }

// isAudience reports whether this server is the only audience of an assertion. Another audience
// could otherwise replay an assertion that the client made for it.
func (s *Server) isAudience(aud any) bool {
	ours := []string{s.o.Issuer, s.o.Issuer + TokenPath}
	switch aud := aud.(type) {
	case string:
		return slices.Contains(ours, aud)
	case []any:
		return len(aud) > 0 && !slices.ContainsFunc(aud, func(one any) bool { text, ok := one.(string); return !ok || !slices.Contains(ours, text) })
	}
	return false
}

// verify returns nil if the client signed the assertion and it was not used before. The error is a
// *fault, or a backend error.
func (s *Server) verify(ctx context.Context, c *Client, a *assertion) error {
	if a.client != c.ID || !c.keyed() {
		return errAssertion
	}
	h := &a.token.Signatures[0].Header
	keys, err := s.clientKeys.find(ctx, c, h.KeyID, h.Algorithm)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(keys, func(k jose.JSONWebKey) bool { _, err := a.token.Verify(k.Key); return err == nil }) {
		return errAssertion
	}
	// Only signed assertions are stored, so that others can neither fill the table nor block a jti.
	sum := sha256.Sum256([]byte(c.ID + "\x00" + a.id))
	err = s.once.Take(ctx, hex.EncodeToString(sum[:]))
	if errors.Is(err, bus.ErrConflict) {
		s.o.Log.Warn("a client assertion was used twice", "client", c.ID)
		return &fault{badClient, "the client assertion was used before"}
	}
	return err
}

// caller is the client that sends a request to the token endpoint. It may not be verified yet.
type caller struct {
	id string
	// assertion is set for a client with a metadata document. It is verified once a grant of the
	// client is known, so that others cannot make this server fetch an address.
	assertion *assertion
}

// confirm returns nil if the caller authenticated as the client of a grant requires.
func (s *Server) confirm(ctx context.Context, who *caller, one *grant) error {
	if s.configured(who.id) != nil {
		return nil // already authenticated
	}
	switch {
	case !one.Keyed && who.assertion == nil:
		return nil
	case !one.Keyed || who.assertion == nil:
		return &fault{badClient, "the client must authenticate as its metadata document says"}
	}
	c, err := s.documents.get(ctx, who.id)
	if err != nil {
		return unread("the metadata document of the client", err)
	}
	return s.verify(ctx, c, who.assertion)
}

// authenticate identifies the client that sends a form. user and password are those of the
// Authorization header if basic is true.
func (s *Server) authenticate(ctx context.Context, form url.Values, user, password string, basic bool) (*caller, error) {
	a, err := s.readAssertion(form)
	if err != nil {
		return nil, err
	}
	id, secret := form.Get("client_id"), form.Get("client_secret")
	if basic { // both are form-encoded (RFC 6749, section 2.3.1)
		u, err1 := url.QueryUnescape(user)
		p, err2 := url.QueryUnescape(password)
		if err1 != nil || err2 != nil || form.Has("client_secret") || a != nil || id != "" && id != u {
			return nil, &fault{badRequest, "the client authenticates in two ways"}
		}
		id, secret = u, p
	}
	if a != nil {
		if form.Has("client_secret") || id != "" && id != a.client {
			return nil, &fault{badRequest, "the client authenticates in two ways"}
		}
		id = a.client
	}
	if id == "" {
		return nil, &fault{badClient, "client_id is missing"}
	}
	c := s.configured(id)
	switch {
	case c == nil && secret == "": // its grant is bound to the ID, and determines the authentication method
		return &caller{id, a}, nil
	case c == nil || a == nil && !c.proves(secret):
		return nil, &fault{badClient, "the client's credential is missing or wrong"}
	case a != nil:
		if err := s.verify(ctx, c, a); err != nil {
			return nil, err
		}
	}
	return &caller{id: id}, nil
}

// Keys of clients are read again after keysKept. They are also read again when a client signs with
// an unknown key, but not within keysCooldown.
const (
	keysKept      = 5 * time.Minute
	keysCooldown  = 30 * time.Second
	maxClientKeys = 64 << 10
)

// verificationKeys returns the keys of a set that may verify a signature.
func verificationKeys(set []byte, id, algorithm string) ([]jose.JSONWebKey, error) {
	keys, err := token.ReadKeys(set)
	if err != nil {
		return nil, err
	}
	return token.Matching(keys, id, algorithm), nil
}
