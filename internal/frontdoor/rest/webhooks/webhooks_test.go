package webhooks

import (
	"testing"
	"time"

	"github.com/callyard/callyard/internal/authn/scope"
	"github.com/callyard/callyard/internal/webhook"
	"github.com/callyard/callyard/pkg/schema"
)

func principal(t *testing.T, tenant schema.TenantID, scopes ...string) *schema.Principal {
	t.Helper()
	set, err := scope.Parse(scopes)
	if err != nil {
		t.Fatal(err)
	}
	return &schema.Principal{Name: "ops", Tenant: tenant, Grant: &scope.Grant{Scopes: set}}
}

func TestOnlyAdministratorsOfTheDefaultTenantSeeDeliveriesOfOthers(t *testing.T) {
	for name, c := range map[string]struct {
		who          *schema.Principal
		own, another bool
	}{
		"admin of the default tenant":        {principal(t, "", scope.Admin), true, true},
		"tenant admin of the default tenant": {principal(t, "", scope.AdminTenant), true, false},
		"admin of a tenant":                  {principal(t, "billing", scope.Admin), true, false},
		"tenant admin":                       {principal(t, "billing", scope.AdminTenant), true, false},
		"a key without a role":               {&schema.Principal{Name: "root"}, true, true},
	} {
		of := visible(c.who)
		if got := of.Include(c.who.Tenant); got != c.own {
			t.Errorf("%s: own tenant visible: %t", name, got)
		}
		if got := of.Include("sales"); got != c.another {
			t.Errorf("%s: another tenant visible: %t", name, got)
		}
	}
}

func TestADeliveryIsShownWithItsState(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	waiting := deliveryOf(&webhook.Delivery{ID: "a", Next: at, LastError: "503", Tenant: schema.DefaultTenant})
	if waiting.State != "waiting" || waiting.Next == nil || !waiting.Next.Equal(at) || waiting.Ended != nil || waiting.Reason != "" || waiting.Tenant != "" {
		t.Errorf("%+v", waiting)
	}
	dead := deliveryOf(&webhook.Delivery{ID: "b", Dead: "410", Ended: at, Tenant: "billing"})
	if dead.State != "dead" || dead.Next != nil || dead.Ended == nil || dead.Reason != "410" || dead.Tenant != "billing" {
		t.Errorf("%+v", dead)
	}
}
