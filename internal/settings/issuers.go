package settings

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/callyard/callyard/internal/authn"
	"github.com/callyard/callyard/internal/authn/scope"
	"github.com/callyard/callyard/internal/config"
	"github.com/callyard/callyard/internal/kit/urls"
)

// Issuer is one entry of front_door.issuers: an issuer of access tokens (JWT), which callers send
// instead of an API key.
type Issuer struct {
	// Name is short and unique. A principal is named NAME:SUBJECT, so that two issuers never share
	// one.
	Name string `yaml:"name"`
	// Issuer must equal the claim iss of the tokens.
	Issuer string `yaml:"issuer"`
	// JWKSURL is the address of the public keys, and JWKSFile a file that holds them. If both are
	// empty, the discovery document of the issuer names the address.
	JWKSURL  string `yaml:"jwks_url"`
	JWKSFile string `yaml:"jwks_file"`
	// Audiences are accepted on every path, in addition to the address of the path itself.
	Audiences []string `yaml:"audiences"`
	// Algorithms are the accepted signature algorithms. If empty, all asymmetric ones are accepted.
	Algorithms []string `yaml:"algorithms"`
	// Types are the accepted values of the header typ. If empty, only at+jwt is accepted. A token
	// without typ counts as JWT. Types other than at+jwt need RequireClaims.
	Types []string `yaml:"types"`
	// RequireClaims maps claims to values. Each claim must have one of its values.
	RequireClaims map[string][]string `yaml:"require_claims"`
	// MaxLifetime limits the time between iat and exp. 0 means one day.
	MaxLifetime time.Duration `yaml:"max_lifetime"`
	// Claims maps claims to the fields of a principal.
	Claims ClaimNames `yaml:"claims"`
	// GroupMap maps a group of the token to groups of the policy. If empty, groups keep their names.
	GroupMap map[string][]string `yaml:"group_map"`
	// Roles maps a group of the token to a role. All matching roles count. A token that lists scopes
	// gets only those that its roles have.
	Roles map[string]scope.Role `yaml:"roles"`
	// Scopes are the scopes of tokens without a scope claim.
	Scopes []string `yaml:"scopes"`
}

// ClaimNames are names of claims. A name may be a path with dots.
type ClaimNames struct {
	Name   string `yaml:"name"`   // of the principal, after the name of the issuer; default sub
	Owner  string `yaml:"owner"`  // the person or team; if empty, none, or "owner" for tokens of the approver
	Groups string `yaml:"groups"` // default groups
	Tenant string `yaml:"tenant"` // none if empty
	Scopes string `yaml:"scopes"` // default scope
}

// AccessTokenType is the typ of access tokens (RFC 9068), PlainType that of any JWT.
const (
	AccessTokenType = "at+jwt"
	PlainType       = "JWT"
)

// TokenAlgorithms returns the algorithms that may sign access tokens. None is symmetric, because
// with a symmetric key the verifier could create tokens.
func TokenAlgorithms() []string {
	return []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}
}

// TokenType normalizes a typ for comparison: lower case, without "application/" (RFC 7515).
func TokenType(typ string) string {
	return strings.TrimPrefix(strings.ToLower(typ), "application/")
}

const maxIssuerName = 32

// check adds the faults of one entry.
func (i *Issuer) check(path string, faults *config.Collector) {
	add := func(key, format string, args ...any) { faults.Addf(path+"."+key, format, args...) }
	if i.Name == "" || len(i.Name) > maxIssuerName || strings.Trim(i.Name, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
		add("name", "must have 1 to %d small letters, digits, hyphens or underscores.", maxIssuerName)
	} else if i.Name == authn.Local || i.Name+":" == NamePrefix {
		add("name", "%q is reserved; choose another name.", i.Name)
	}
	if u, ok := urls.Secure(i.Issuer); !ok && !strings.HasPrefix(i.Issuer, "spiffe://") || ok && u.RawQuery != "" {
		add("issuer", "must be an https URL, exactly as in the claim iss; http is allowed for loopback only.")
	}
	if _, ok := urls.Secure(i.JWKSURL); i.JWKSURL != "" && !ok {
		add("jwks_url", "must be an https URL; http is allowed for loopback only.")
	}
	if i.JWKSURL != "" && i.JWKSFile != "" {
		add("jwks_file", "and jwks_url are both set; keep one.")
	}
	if slices.Contains(i.Audiences, "") {
		add("audiences", "contains an empty audience.")
	}
	for _, a := range i.Algorithms {
		if !slices.Contains(TokenAlgorithms(), a) {
			add("algorithms", "contains %q; the algorithms are %s.", a, strings.Join(TokenAlgorithms(), ", "))
		}
	}
	if other := slices.ContainsFunc(i.Types, func(t string) bool { return TokenType(t) != AccessTokenType }); other && len(i.RequireClaims) == 0 {
		add("require_claims", "is required when types has more than %s: name a claim that only access tokens for callers have, so that an ID token or a token of somebody else's workload is none.", AccessTokenType)
	}
	for claim, values := range i.RequireClaims {
		if claim == "" || len(values) == 0 || slices.Contains(values, "") {
			add("require_claims", "must name a claim and at least one value for each.")
		}
	}
	if i.MaxLifetime < 0 {
		add("max_lifetime", "is negative; omit it for a day.")
	}
	if _, err := scope.Parse(i.Scopes); err != nil {
		add("scopes", "%s", err)
	}
	for _, group := range slices.Sorted(maps.Keys(i.Roles)) {
		if err := i.Roles[group].Check(); err != nil {
			add("roles", "of group %q %s.", group, err)
		}
	}
}

// checkIssuers returns the faults of the issuers and of the address that tokens are for.
func (c *FrontDoor) checkIssuers() (faults config.Collector) {
	if u, ok := urls.Secure(c.PublicURL); c.PublicURL != "" && (!ok || u.RawQuery != "" || u.ForceQuery || strings.ContainsAny(c.PublicURL, "\"\\ #")) {
		faults.Addf("public_url", "must be the https URL by which callers reach the front door, without a query; http is allowed for loopback only.")
	}
	if len(c.Issuers) > 0 && c.PublicURL == "" {
		faults.Addf("public_url", "is required with issuers: tokens are issued for this address, and no header of a request may choose it.")
	}
	names, issuers := map[string]bool{}, map[string]bool{}
	for i := range c.Issuers {
		e, path := &c.Issuers[i], fmt.Sprintf("issuers[%d]", i)
		e.check(path, &faults)
		if names[e.Name] {
			faults.Addf(path+".name", "is used by another issuer; rename one of them.")
		}
		if issuers[e.Issuer] {
			faults.Addf(path+".issuer", "is in another entry; merge them.")
		}
		names[e.Name], issuers[e.Issuer] = true, true
	}
	for i, k := range c.Keys {
		if prefix, _, ok := strings.Cut(k.Name, ":"); ok && names[prefix] {
			faults.Addf(fmt.Sprintf("keys[%d].name", i), "begins with the name of an issuer, as the principals of its tokens do; choose another name.")
		}
	}
	return faults
}
