package bus_test

import (
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/bus/bustest"
)

// lineLog is a log that can be read while it is written.
type lineLog struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lineLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lineLog) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), text)
}

// Each call in flight of a batch has a message, so an outage of NATS would write thousands of lines.
func TestCallsThatAreNotSentDuringAnOutageAreNotLogged(t *testing.T) {
	srv, lines := bustest.Start(t), &lineLog{}
	c, err := bus.Connect(t.Context(), bus.Options{URL: srv.URL, Name: "n", Log: slog.New(slog.NewTextHandler(lines, nil))})
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
	if lines.count("was not sent") != 0 {
		t.Errorf("the log is:\n%s", lines.text.String())
	}
}
