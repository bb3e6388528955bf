package bus_test

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/bus/bustest"
)

// Each call in flight of a batch has a message, so an outage of NATS would write thousands of lines.
func TestCallsThatAreNotSentDuringAnOutageAreNotLogged(t *testing.T) {
	srv, log := bustest.Start(t), &said{}
	c, err := bus.Connect(t.Context(), bus.Options{URL: srv.URL, Name: "n", Log: slog.New(slog.NewTextHandler(log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	cl := client(t, c)
	srv.Stop()
	for c.Ready() == nil {
		_ = c.Publish("nobody", nil) // finally the connection is known to be down
	}
	for range 20 {
		w, _ := send(t, cl, "w1", "echo", "{}")
		if f := w.next(t); f.Kind != bus.ReplyNobody {
			t.Fatalf("got %v", f.Kind)
		}
	}
	if text := log.String(); strings.Contains(text, "was not sent") {
		t.Errorf("the log is:\n%s", text)
	}
}
