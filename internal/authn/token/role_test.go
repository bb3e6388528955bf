package token_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/authn/scope"
	"github.com/callyard/callyard/internal/authn/token/tokentest"
)

func TestTokenGroupsMapToRoles(t *testing.T) {
	is := tokentest.Start(t)
	entry := is.Entry("idp")
	entry.Roles = map[string]scope.Role{"devs": scope.Developer, "audit": scope.Auditor, "callers": scope.Caller}
	v := open(t, entry)
	const resource = "https://door.example"
	for _, c := range []struct {
		groups       []string
		scopes, want string
	}{
		{[]string{"devs"}, "", "tools:read tools:call calls:read"},
		{[]string{"devs"}, "openid profile", "tools:read tools:call calls:read"},
		{[]string{"devs"}, "tools:call:files admin", "tools:call:files"}, // the client asked for less, and cannot have more
		{[]string{"callers", "audit"}, "", "tools:list tools:call tools:read calls:read:all"},
		{[]string{"others"}, "", ""},
		{[]string{"others"}, "tools:read", "tools:read"}, // as without roles
	} {
		claims := is.Claims("ann", resource, tokentest.Claims{"groups": c.groups, "scope": c.scopes, "jti": c.scopes + strings.Join(c.groups, " ")})
		got, err := v.Verify(context.Background(), is.Key().Sign(t, claims, nil), resource)
		if err != nil {
			t.Fatal(err)
		}
		have, want := got.Scopes.List(), strings.Fields(c.want)
		slices.Sort(have)
		slices.Sort(want)
		if !slices.Equal(have, want) {
			t.Errorf("groups %v, scopes %q: %v, want %v", c.groups, c.scopes, have, want)
		}
	}
}
