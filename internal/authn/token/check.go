package token

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/json"

	"github.com/callyard/callyard/internal/authn"
	"github.com/callyard/callyard/internal/authn/scope"
	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/pkg/schema"
)

const (
	maxGroups = 1000
	alphabet  = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_."
)

// forbidden are header members that name another key, other rules or another content. Libraries
// ignore some of them, but no valid issuer sends them.
var forbidden = []jose.HeaderKey{"jku", "x5u", "crit", "b64", "zip", "cty", "enc", "epk"}

// idTokenClaims occur in ID tokens, which prove a sign-in to the client and are not credentials,
// and in other tokens that are not access tokens.
var idTokenClaims = []string{"nonce", "at_hash", "c_hash", "s_hash", "events"}

// claims are the claims of a token. Numbers are float64.
type claims = map[string]any

// check parses a token and checks everything except the resource.
func (v *Verifier) check(ctx context.Context, raw string, now time.Time) (*Token, error) {
	if !wellFormed(raw) {
		return nil, refused("it is malformed")
	}
	tok, err := jose.ParseSignedCompact(raw, Algorithms)
	if err != nil || len(tok.Signatures) != 1 {
		return nil, refused("it is malformed, or signed with an algorithm that is not accepted")
	}
	var c claims
	if err := json.Unmarshal(tok.UnsafePayloadWithoutVerification(), &c); err != nil || c == nil {
		return nil, refused("its claims cannot be read")
	}
	iss, _ := c["iss"].(string)
	i := v.issuers[iss]
	if i == nil {
		return nil, refused("its issuer is not one of this front door")
	}
	header := &tok.Signatures[0].Header
	if e := i.checkHeader(header); e != nil {
		return nil, e
	}
	// Cheap checks come before the signature. Nothing is trusted yet.
	t, e := i.read(c, now)
	if e != nil {
		return nil, e
	}
	issued, _ := at(c["iat"])
	if e := i.checkSignature(ctx, tok, issued); e != nil {
		return nil, e
	}
	t.until = now.Add(rememberedFor)
	if t.Expires.Before(t.until) {
		t.until = t.Expires
	}
	return t, nil
}

// wellFormed reports whether a token has only valid characters, and valid UTF-8 in its header and
// claims, because JSON parsers replace invalid UTF-8.
func wellFormed(raw string) bool {
	if strings.Trim(raw, alphabet) != "" {
		return false
	}
	for n, part := range strings.SplitN(raw, ".", 4) {
		text, err := base64.RawURLEncoding.Strict().DecodeString(part)
		if err != nil || n < 2 && !utf8.Valid(text) || n > 2 {
			return false
		}
	}
	return true
}

// Algorithms are the algorithms of all issuers. All are asymmetric. It is never changed.
var Algorithms = func() (all []jose.SignatureAlgorithm) {
	for _, a := range settings.TokenAlgorithms() {
		all = append(all, jose.SignatureAlgorithm(a))
	}
	return all
}()

func (i *issuer) checkHeader(h *jose.Header) *schema.Error {
	if !slices.Contains(i.algorithms, h.Algorithm) {
		return refused("its issuer does not sign with this algorithm")
	}
	if h.JSONWebKey != nil || slices.ContainsFunc(forbidden, func(k jose.HeaderKey) bool { _, has := h.ExtraHeaders[k]; return has }) {
		return refused("its header names a key or rules of its own")
	}
	typ, has := h.ExtraHeaders[jose.HeaderType]
	text, ok := typ.(string)
	if !has {
		text, ok = settings.PlainType, true
	}
	if !ok || !slices.Contains(i.types, settings.TokenType(text)) {
		return refused("it is not an access token by its type; the issuer's entry in front_door.issuers lists the types")
	}
	return nil
}

// checkSignature verifies a token that claims to be issued at a time, or at the zero time.
func (i *issuer) checkSignature(ctx context.Context, tok *jose.JSONWebSignature, issued time.Time) *schema.Error {
	h := &tok.Signatures[0].Header
	keys, err := i.keys.find(ctx, h.KeyID, h.Algorithm, issued)
	if err != nil {
		return keyFault(err)
	}
	for n := range keys {
		if _, err := tok.Verify(keys[n].Key); err == nil {
			return nil
		}
	}
	return refused("its signature is wrong")
}

// read creates a token from its claims by the settings of its issuer.
func (i *issuer) read(c claims, now time.Time) (*Token, *schema.Error) {
	expires, e := i.checkTimes(c, now)
	if e != nil {
		return nil, e
	}
	for _, name := range idTokenClaims {
		if _, has := c[name]; has {
			return nil, refused("it is an ID token, which is not a credential; send the access token")
		}
	}
	if use, _ := c["token_use"].(string); use != "" && use != "access" {
		return nil, refused("it is not an access token")
	}
	bound, ok := boundTo(c["cnf"])
	if !ok {
		return nil, refused("it is bound to a key of its client, and is not accepted as a bearer token")
	}
	for claim, values := range i.c.RequireClaims {
		if !anyOf(texts(lookUp(c, claim)), values) {
			return nil, refused("the claim %s is not as front_door.issuers requires", claim)
		}
	}
	t := &Token{Issuer: i.c.Name, Expires: expires, Thumbprint: bound, audiences: texts(c["aud"])}
	t.everywhere = anyOf(t.audiences, i.c.Audiences)
	if len(t.audiences) == 0 {
		return nil, refused("it has no audience")
	}
	t.Subject, _ = c["sub"].(string)
	if !authn.ValidName(t.Subject) {
		return nil, refused("it has no subject")
	}
	return t, i.fill(t, c)
}

// boundTo reads the claim cnf (RFC 7800) and returns the thumbprint of a client certificate (RFC
// 8705), or "" if there is no claim. ok is false for a token bound to anything else, or with an
// invalid claim.
func boundTo(cnf any) (thumbprint string, ok bool) {
	if cnf == nil {
		return "", true
	}
	of, ok := cnf.(map[string]any)
	if !ok || len(of) != 1 {
		return "", false
	}
	thumbprint, ok = of["x5t#S256"].(string)
	raw, err := base64.RawURLEncoding.DecodeString(thumbprint)
	return thumbprint, ok && err == nil && len(raw) == sha256.Size
}

// fill sets the fields that the settings map to claims.
func (i *issuer) fill(t *Token, c claims) *schema.Error {
	names := i.c.Claims
	name, ok := lookUp(c, cmp.Or(names.Name, "sub")).(string)
	if !ok || !authn.ValidName(name) {
		return refused("the claim %s, which names the principal, is missing or not a short text", cmp.Or(names.Name, "sub"))
	}
	t.Principal = schema.Principal{Name: i.c.Name + ":" + name, Groups: i.groups(c)}
	// Without the owner, a person could approve the calls of their own programs, which have another
	// name.
	t.Grant, _ = c[scope.GrantClaim].(string)
	if names.Owner == "" && t.Grant != "" {
		names.Owner = scope.OwnerClaim
	}
	if names.Owner != "" {
		if t.Principal.Owner, ok = lookUp(c, names.Owner).(string); !ok || !authn.ValidName(t.Principal.Owner) {
			return refused("the claim %s, which names the owner, is missing or not a short text", names.Owner)
		}
	}
	// If this mapping is missing, a member of a tenant must not become a principal of the default
	// tenant.
	if of, has := c[scope.TenantClaim]; has && of != nil && names.Tenant != scope.TenantClaim {
		return refused("it is of a tenant; set claims.tenant of its entry in front_door.issuers to %s", scope.TenantClaim)
	}
	if names.Tenant != "" {
		tenant, ok := lookUp(c, names.Tenant).(string)
		if t.Tenant = schema.TenantID(tenant); ok && t.Tenant == schema.DefaultTenant {
			return refused("the claim %s names the tenant %q, which is that of the operators; no token can be of it", names.Tenant, tenant)
		}
		if !ok || !t.Tenant.Valid() {
			return refused("the claim %s, which names the tenant, is missing or not 1 to 64 letters, digits, - and _", names.Tenant)
		}
		// The same subject may belong to several tenants and is a different principal in each.
		t.Principal.Name, t.Principal.Tenant = i.c.Name+":"+tenant+"/"+name, t.Tenant.Stored()
	}
	if t.Client, ok = c["client_id"].(string); !ok {
		t.Client, _ = c["azp"].(string)
	}
	t.Scopes = i.scopes
	if raw := lookUp(c, cmp.Or(names.Scopes, "scope")); raw != nil {
		var list []string
		for _, one := range texts(raw) {
			list = append(list, strings.Fields(one)...)
		}
		t.Scopes = scope.Of(list)
	}
	if role := i.role(c); !role.Empty() {
		// Providers that do not know Callyard's scopes list none or only their own. A client that
		// requested fewer scopes than its person has gets only those.
		if t.Scopes.Empty() {
			t.Scopes = role
		} else {
			t.Scopes = scope.Both(&t.Scopes, &role)
		}
	}
	return nil
}

// role returns the scopes of the roles that the groups of a token map to.
func (i *issuer) role(c claims) scope.Set {
	if len(i.c.Roles) == 0 {
		return scope.Set{}
	}
	given, list := texts(lookUp(c, cmp.Or(i.c.Claims.Groups, "groups"))), []string(nil)
	for _, g := range given[:min(len(given), maxGroups)] {
		for _, one := range i.c.Roles[g].Scopes() {
			if !slices.Contains(list, one) {
				list = append(list, one)
			}
		}
	}
	return scope.Of(list)
}

// checkTimes checks the validity period of a token and returns its expiry.
func (i *issuer) checkTimes(c claims, now time.Time) (time.Time, *schema.Error) {
	expires, ok := at(c["exp"])
	if !ok {
		return expires, refused("it has no time of expiry")
	}
	if !now.Before(expires.Add(skew)) {
		return expires, refused("it has expired")
	}
	begin := now
	for _, name := range []string{"nbf", "iat"} {
		raw, has := c[name]
		if !has {
			continue
		}
		when, ok := at(raw)
		if !ok || when.After(now.Add(skew)) {
			return expires, refused("it is not valid yet")
		}
		begin = when
	}
	if expires.Sub(begin) > i.lifetime {
		return expires, refused("it is valid for longer than %s", i.lifetime)
	}
	return expires.Add(skew), nil
}

// at parses a NumericDate in a plausible range.
func at(raw any) (time.Time, bool) {
	n, ok := raw.(float64)
	if !ok || math.IsNaN(n) || n <= 0 || n > 1<<40 {
		return time.Time{}, false
	}
	return time.UnixMilli(int64(n * 1000)), true
}

func (i *issuer) groups(c claims) []string {
	given := texts(lookUp(c, cmp.Or(i.c.Claims.Groups, "groups")))
	var groups []string
	for _, g := range given[:min(len(given), maxGroups)] {
		switch mapped, named := i.c.GroupMap[g]; {
		case named:
			groups = append(groups, mapped...)
		case len(i.c.GroupMap) == 0 && authn.ValidName(g):
			groups = append(groups, g)
		}
	}
	slices.Sort(groups)
	return slices.Compact(groups)
}

// lookUp returns a claim by its name, or by a path of names separated by dots.
func lookUp(c claims, name string) any {
	if v, ok := c[name]; ok {
		return v
	}
	// A name in the path may contain dots itself, such as kubernetes.io.
	for n := range name {
		if name[n] != '.' {
			continue
		}
		if inner, ok := c[name[:n]].(claims); ok {
			if v := lookUp(inner, name[n+1:]); v != nil {
				return v
			}
		}
	}
	return nil
}

// texts returns a string or a list of strings; nil for anything else.
func texts(v any) []string {
	switch v := v.(type) {
	case string:
		return []string{v}
	case []any:
		list := make([]string, 0, len(v))
		for _, one := range v {
			text, ok := one.(string)
			if !ok {
				return nil
			}
			list = append(list, text)
		}
		return list
	}
	return nil
}

func anyOf(have, want []string) bool {
	return slices.ContainsFunc(have, func(one string) bool { return slices.Contains(want, one) })
}
