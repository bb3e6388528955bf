package webhook

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/callyard/callyard/internal/tenants/retention"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

func TestBodiesAreDeletedAfterTenantRetention(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, c, m := &receiving{answers: []answer{{status: 400}, {status: 500}}}, newCounter(), newMemory()
		o := Options{Store: m, Count: c.count, Retention: retention.Periods{"red": 2 * time.Hour}}
		s, other := begin(t, o, r), begin(t, o, r)
		defer shut(t, s)
		defer shut(t, other)
		sendAs := func(id string, tenant schema.TenantID) {
			t.Helper()
			if err := s.Send(t.Context(), Message{ID: id, URL: hook, Tenant: tenant, Event: event(1)}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		sendAs("dead", "red")
		sendAs("waits", "red")
		sendAs("blue", "blue")
		has := func(id string, tenant schema.TenantID) bool {
			t.Helper()
			_, err := m.Body(t.Context(), tenant, id)
			if err != nil && !errors.Is(err, bus.ErrNotFound) {
				t.Fatal(err)
			}
			return err == nil
		}
		time.Sleep(2*time.Hour - time.Minute)
		synctest.Wait()
		if !has("dead", "red") || !has("waits", "red") || !has("blue", "blue") {
			t.Fatal("a body went before its time")
		}
		time.Sleep(forgetEvery + time.Minute)
		synctest.Wait()
		if has("dead", "red") || has("waits", "red") || !has("blue", "blue") {
			t.Errorf("bodies are there: %t, %t; of another tenant: %t", has("dead", "red"), has("waits", "red"), has("blue", "blue"))
		}
		dead := s.Deliveries(schema.AllTenants(), true)
		if len(dead) != 2 || dead[1].Dead != retentionOver || !strings.Contains(dead[0].Dead, "answered 400") {
			t.Errorf("given up are %+v", dead)
		}
		if waiting := only(t, s.Deliveries(schema.AllTenants(), false)); waiting.ID != "blue" {
			t.Errorf("%+v waits", waiting)
		}
		// Who sends it again is told so, and the receiver hears nothing.
		sent := r.requests()
		if _, err := s.Retry(t.Context(), schema.AllTenants(), "waits"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if st := m.stored(t, "waits"); st.Dead != retentionOver || !st.Forgotten || r.requests() != sent {
			t.Errorf("sent again: %+v, %d requests", st, r.requests()-sent)
		}
	})
}

// A process that is killed between the body and the state leaves a delivery without a body.
func TestADeliveryWithoutItsBodyIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, m := &receiving{answers: []answer{{status: 500}}}, newMemory()
		s := begin(t, Options{Store: m, Retention: retention.Periods{"red": 48 * time.Hour}}, r)
		defer shut(t, s)
		if err := s.Send(t.Context(), Message{ID: "m", URL: hook, Tenant: "red", Event: event(1)}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if err := m.Forget(t.Context(), "red", "m"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if st := m.stored(t, "m"); st.Dead == "" || r.requests() != 1 {
			t.Errorf("%+v, %d requests", st, r.requests())
		}
	})
}
