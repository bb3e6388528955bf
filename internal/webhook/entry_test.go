package webhook

import (
	"testing"
	"time"

	"github.com/callyard/callyard/pkg/schema"
)

func TestADeliveryIsShownWithItsState(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	waiting := (&Delivery{ID: "a", Next: at, LastError: "503", Tenant: schema.DefaultTenant}).Entry()
	if waiting.State != "waiting" || waiting.Next == nil || !waiting.Next.Equal(at) || waiting.Ended != nil || waiting.Reason != "" || waiting.Tenant != "" {
		t.Errorf("%+v", waiting)
	}
	dead := (&Delivery{ID: "b", Dead: "410", Ended: at, Tenant: "billing"}).Entry()
	if dead.State != "dead" || dead.Next != nil || dead.Ended == nil || dead.Reason != "410" || dead.Tenant != "billing" {
		t.Errorf("%+v", dead)
	}
}
