package outbox

import (
	"errors"
	"testing"
	"time"

	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/schema"
)

func TestApproverEventsShareTheOutboxWithWebhooks(t *testing.T) {
	c := bustest.Start(t).Connect(t, "approver")
	hooks, err := Open(t.Context(), c, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	notices, err := OpenNotices(t.Context(), c, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := notices.Create(t.Context(), schema.DefaultTenant, "evt_1", []byte("state"), []byte("body")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := hooks.Get(t.Context(), schema.AllTenants(), "evt_1"); !errors.Is(err, bus.ErrNotFound) {
		t.Errorf("a front door sees it: %v", err)
	}
	seen := make(chan string, 1)
	stop, err := notices.Watch(t.Context(), schema.AllTenants(), func(id string, _ []byte, _ uint64) { seen <- id })
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	if id := <-seen; id != "evt_1" {
		t.Error(id)
	}
	if body, err := notices.Body(t.Context(), schema.DefaultTenant, "evt_1"); err != nil || string(body) != "body" {
		t.Errorf("%s, %v", body, err)
	}
}
