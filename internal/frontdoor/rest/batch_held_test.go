package rest

import (
	"fmt"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/callyard/callyard/internal/frontdoor/frontdoortest"
	"github.com/callyard/callyard/internal/kit/polltest"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/bus/bustest"
)

// A call that could not be held has not failed: the approval may be stored nevertheless, and then its
// approved call would run although its result says that it failed.
func TestCallOfABatchWaitsWhileApprovalsCannotBeStored(t *testing.T) {
	t.Parallel()
	f := openFabricWith(t, frontdoortest.Options{Policy: policyOf(t, "rules: [{name: ask, level: 2}]")}, nil)
	js := bustest.JetStream(t, f.NATS.URL)
	stream, err := js.Stream(t.Context(), bus.StreamLedger)
	if err != nil {
		t.Fatal(err)
	}
	config := stream.CachedInfo().Config
	full := config
	full.MaxBytes = 1
	if _, err := js.UpdateStream(t.Context(), full); err != nil {
		t.Fatal(err)
	}
	nc, err := nats.Connect(f.NATS.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	attempts := make(chan *nats.Msg, 100)
	if _, err := nc.ChanSubscribe(bus.SubjectApproval+"*"+bus.SuffixOpen, attempts); err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	b := f.batch(`{"calls":[{"server":"demo","tool":"echo","arguments":{}}]}`)
	now := func() string {
		c := f.showBatch(b.ID).Counts
		return fmt.Sprintf("%d held, %d failed", c.Held, c.Failed)
	}
	polltest.Until(t, "a second attempt", func() bool { return len(attempts) >= 2 || now() != "0 held, 0 failed" })
	if got := now(); got != "0 held, 0 failed" {
		t.Fatalf("of the call are %s", got)
	}
	if _, err := js.UpdateStream(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	polltest.Until(t, "the held call", func() bool { return now() == "1 held, 0 failed" })
}
