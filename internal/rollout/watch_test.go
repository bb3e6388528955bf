package rollout

import (
	"testing"

	"github.com/callyard/callyard/internal/authn/scope"
	"github.com/callyard/callyard/pkg/schema"
)

func TestOtherPrincipalsEpisodesRequireAdminScope(t *testing.T) {
	some := &scope.Grant{Scopes: scope.Of([]string{scope.CallTools})}
	all := &scope.Grant{Scopes: scope.Of([]string{scope.Admin})}
	for _, test := range []struct {
		who  schema.Principal
		want bool
	}{
		{schema.Principal{Name: "trainer"}, true}, // a credential without scopes may do everything
		{schema.Principal{Name: "ops", Grant: all}, true},
		{schema.Principal{Name: "caller", Grant: some}, false},
		{schema.Principal{Name: "red ops", Tenant: "red", Grant: all}, false},
		{schema.Principal{Name: "red", Tenant: "red"}, false},
	} {
		err := mayWatch(&test.who)
		if got := err == nil; got != test.want || err != nil && schema.KindOf(err) != schema.KindForbidden {
			t.Errorf("%+v: %v", test.who, err)
		}
	}
}
