package bus_test

import (
	"strings"
	"testing"

	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/schema"
)

func TestCancelReachesEveryWatcher(t *testing.T) {
	s := bustest.Start(t)
	sender := s.Connect(t, "sender")
	heard := make(chan schema.CallID, 8)
	for _, c := range []*bus.Conn{sender, s.Connect(t, "other")} {
		w, err := c.WatchCancels(func(id schema.CallID) { heard <- id })
		if err != nil {
			t.Fatal(err)
		}
		defer w.Stop()
		if err := c.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range []schema.CallID{"", schema.CallID(strings.Repeat("x", 257))} {
		if err := sender.CancelCall(id); err == nil {
			t.Errorf("an id of %d bytes was sent", len(id))
		}
	}
	if err := sender.CancelCall("call_1"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if id := <-heard; id != "call_1" {
			t.Errorf("heard %q", id)
		}
	}
}
