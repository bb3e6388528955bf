package oidc

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/callyard/callyard/internal/authn"
	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/pkg/schema"
)

// Flow is a sign-in in progress. It belongs to one browser. The caller stores it there, sealed.
type Flow struct {
	State    string    `json:"state"`
	Nonce    string    `json:"nonce"`
	Verifier string    `json:"verifier"`
	Began    time.Time `json:"began"`
	// Fresh reports whether the person must authenticate again.
	Fresh bool `json:"fresh,omitempty"`
}

// Person is a person who signed in.
type Person struct {
	Principal schema.Principal
	// SignedIn is the time of the last authentication at the provider, or zero if the provider
	// does not report it.
	SignedIn time.Time
}

const maxGroups = 1000

// principal returns the principal for the claims.
func (p *Provider) principal(subject string, claims map[string]json.RawMessage) (schema.Principal, error) {
	email := verified(claims)
	if len(p.c.EmailDomains) > 0 && !p.fromOurDomain(email) {
		return schema.Principal{}, schema.Errorf(schema.KindForbidden, "Only people with a verified email address in certain domains can sign in here, and yours is not in one of them. Ask the operator.")
	}
	var name string
	switch p.c.NameClaim {
	case settings.EmailClaim:
		name = email
	case "sub":
		name = subject
	default:
		name, _ = text(claims[p.c.NameClaim])
	}
	if !authn.ValidName(name) {
		return schema.Principal{}, schema.Errorf(schema.KindForbidden,
			"%s sent no %s claim that identifies you (an email must be verified there). Ask the operator to have it sent, or to set name_claim to another claim.", p.Name(), p.c.NameClaim)
	}
	who := schema.Principal{Name: settings.NamePrefix + name, Owner: name, Groups: p.groups(claims)}
	if p.c.TenantClaim != "" {
		given, _ := text(claim(claims, p.c.TenantClaim))
		tenant := schema.TenantID(given)
		if tenant == schema.DefaultTenant { // reserved for operators and principals without a tenant
			return schema.Principal{}, schema.Errorf(schema.KindForbidden, "%s sent a %s claim that names the tenant %q, which is reserved for operators. Ask the operator to correct the claim.", p.Name(), p.c.TenantClaim, tenant)
		}
		if !tenant.Valid() {
			return schema.Principal{}, schema.Errorf(schema.KindForbidden, "%s sent no %s claim that names your tenant. Ask the operator to configure it at the identity provider.", p.Name(), p.c.TenantClaim)
		}
		who.Name, who.Tenant = settings.NamePrefix+given+"/"+name, tenant.Stored()
	}
	return who, nil
}

// verified returns the email address of a person in lower case, if the provider has verified it.
// Otherwise anyone could claim the address of another person.
func verified(claims map[string]json.RawMessage) string {
	email, _ := text(claims[settings.EmailClaim])
	word := bytes.Trim(claims["email_verified"], `"`) // some providers send it as a string
	if !bytes.Equal(word, []byte("true")) || strings.Count(email, "@") != 1 {
		return ""
	}
	return strings.ToLower(email)
}

func (p *Provider) fromOurDomain(email string) bool {
	_, domain, ok := strings.Cut(email, "@")
	return ok && slices.ContainsFunc(p.c.EmailDomains, func(d string) bool { return strings.EqualFold(d, domain) })
}

func text(raw json.RawMessage) (s string, ok bool) {
	if len(raw) == 0 || raw[0] != '"' || json.Unmarshal(raw, &s) != nil {
		return "", false
	}
	return s, true
}

// groups returns the groups that the policy knows, without duplicates.
func (p *Provider) groups(claims map[string]json.RawMessage) []string {
	raw := claim(claims, p.c.GroupsClaim)
	var given []string
	if one, ok := text(raw); ok {
		given = []string{one}
	} else if json.Unmarshal(raw, &given) != nil {
		return nil
	}
	var groups []string
	for _, g := range given[:min(len(given), maxGroups)] {
		switch mapped, named := p.c.GroupMap[g]; {
		case named:
			groups = append(groups, mapped...)
		case len(p.c.GroupMap) == 0 && g != "":
			groups = append(groups, g)
		}
	}
	slices.Sort(groups)
	return slices.Compact(groups)
}

// claim returns a claim by its name, or by a dotted path of names.
func claim(claims map[string]json.RawMessage, name string) json.RawMessage {
	if raw, ok := claims[name]; ok {
		return raw
	}
	head, rest, ok := strings.Cut(name, ".")
	var inner map[string]json.RawMessage
	if !ok || json.Unmarshal(claims[head], &inner) != nil {
		return nil
	}
	return claim(inner, rest)
}
