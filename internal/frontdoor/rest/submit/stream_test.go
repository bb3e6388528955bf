package submit

import (
	"testing"

	"github.com/callyard/callyard/internal/kit/sse"
)

func TestAcceptHeaderSelectsStreaming(t *testing.T) {
	for _, row := range []struct {
		accept string
		want   bool
	}{
		{"", false}, {"*/*", false}, {"application/json", false}, {"text/event-stream", true}, {"Text/Event-Stream;q=0.9", true},
		{"application/json, text/event-stream", false}, {"text/event-stream, application/json", true}, {"text/event-stream;q=0, */*", false}, {"text/html", false},
	} {
		if got := WantsEvents([]string{row.accept}); got != row.want {
			t.Errorf("%q: %v", row.accept, got)
		}
	}
	if WantsEvents(nil) || !WantsEvents([]string{"text/html", "text/event-stream"}) {
		t.Error("several headers, or none")
	}
}

func TestSlowClientDropsOldProgressInsteadOfBlocking(t *testing.T) {
	progress := make(chan []byte, progressWaiting)
	for i := range 3 * progressWaiting {
		sse.Offer(progress, []byte{byte(i)})
	}
	if first := <-progress; int(first[0]) != 2*progressWaiting {
		t.Errorf("the oldest that is left is %d", first[0])
	}
}
