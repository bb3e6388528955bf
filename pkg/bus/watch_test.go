package bus_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/callyard/callyard/pkg/bus/bustest"
)

// nats.go gives a subscription up when it cannot create a new consumer for it, and only logs that.
func TestWatchResumesAfterTheClientGivesItUp(t *testing.T) {
	srv := bustest.Start(t)
	changed := make(chan struct{}, 100)
	writer, err := openSwitches(t.Context(), srv.Connect(t, "writer"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(writer.Close)
	reader, err := openSwitches(t.Context(), srv.Connect(t, "reader"), func() { changed <- struct{}{} })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(reader.Close)
	reasons := map[string]string{}
	for round := range 3 {
		if round > 0 {
			if err := reader.GiveUp(); err != nil {
				t.Fatal(err)
			}
		}
		// The first of these writes happen while there is no subscription.
		for tool := range 5 {
			s := toolSwitch{Server: "s", Tool: fmt.Sprint("t", tool), Reason: fmt.Sprint("round ", round)}
			if err := writer.Put(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			reasons[switchKey(s.Server, s.Tool)] = s.Reason
		}
		late := time.NewTimer(30 * time.Second)
		for key, reason := range reasons {
			for {
				if s, _ := reader.Get(key); s.Reason == reason {
					break
				}
				select {
				case <-changed:
				case <-late.C:
					t.Fatalf("round %d: %q was not seen", round, reason)
				}
			}
		}
		late.Stop()
	}
}
