package dispatch

import (
	"bytes"
	"context"
	"testing"

	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/schema"
)

func TestApprovedCallInDoubtIsNotRetriedEvenIfSafe(t *testing.T) {
	srv := bustest.Start(t)
	r := startRouter(t, srv)
	warrants := make(chan []byte, maxAttempts)
	w, _ := startScripted(t, srv, r, "w", func(w *scripted, f *bus.CallFrame, to bus.ReplyTo) {
		warrants <- f.Warrant
		w.l.Error(to, f.Seq, schema.Errorf(schema.KindOutcomeUnknown, "the server exited"), true, 0)
	})
	c := call(true)
	c.Approval, c.Warrant = "appr_x", []byte("signed\x00")
	if _, err := r.Do(context.Background(), c); schema.KindOf(err) != schema.KindOutcomeUnknown {
		t.Errorf("got %v", err)
	}
	if n := w.calls.Load(); n != 1 {
		t.Errorf("it was sent %d times", n)
	}
	if got := <-warrants; !bytes.Equal(got, c.Warrant) {
		t.Errorf("it came with the warrant %q", got)
	}
	idle(t, r)
}
