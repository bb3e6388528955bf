package oidc

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/authn"
	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/pkg/schema"
)

func FuzzClaimsNameAConfiguredPersonOrAreRefused(f *testing.F) {
	for _, seed := range []string{
		`{"email":"ann@example.com","email_verified":true,"groups":["ops"]}`, `{"email":"ann@example.com","email_verified":"true","groups":"ops"}`, `{"email":"a@b@example.com","email_verified":true}`,
		`{"email":["ann@example.com"],"email_verified":true}`, `{"email":"ann@evil.example","email_verified":true}`, `{"email":"ann@example.com","email_verified":false}`, `{"realm":{"roles":["ops","",null]}}`,
	} {
		f.Add("subject", []byte(seed))
	}
	providers := []*Provider{
		{c: settings.OIDC{NameClaim: settings.EmailClaim, GroupsClaim: "groups", EmailDomains: []string{"example.com"}}},
		{c: settings.OIDC{NameClaim: "sub", GroupsClaim: "realm.roles", GroupMap: map[string][]string{"ops": {"approvers", "auditors"}}}},
		{c: settings.OIDC{NameClaim: "name", GroupsClaim: "a.b.c"}},
	}
	f.Fuzz(func(t *testing.T, subject string, raw []byte) {
		var claims map[string]json.RawMessage
		if json.Unmarshal(raw, &claims) != nil {
			return // the token was verified before, so its payload is an object
		}
		for i, p := range providers {
			who, err := p.principal(subject, claims)
			if err != nil {
				if schema.KindOf(err) != schema.KindForbidden || strings.Contains(err.Error(), "@") {
					t.Fatalf("%q is refused with %v", raw, err)
				}
				continue
			}
			name, ok := strings.CutPrefix(who.Name, settings.NamePrefix)
			if !ok || !authn.ValidName(name) || len(who.Groups) > 2*maxGroups {
				t.Fatalf("%q comes in as %q", raw, who.Name)
			}
			if i == 0 && !strings.HasSuffix(name, "@example.com") {
				t.Fatalf("%q of no domain of ours comes in as %q", raw, who.Name)
			}
			if i == 1 && slices.ContainsFunc(who.Groups, func(g string) bool { return g != "approvers" && g != "auditors" }) {
				t.Fatalf("%q has the groups %q", raw, who.Groups)
			}
		}
	})
}
