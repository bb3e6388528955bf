package batch

import (
	"testing"

	"github.com/callyard/callyard/internal/store/journal"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/schema"
)

// The key of a batch can be stored although its write got no answer. The repeated request must not find a
// batch that takes no calls.
func TestBatchStaysOpenIfItIsUnknownWhetherItsKeyIsStored(t *testing.T) {
	srv := bustest.Start(t)
	o, js, stop, work := workingOn(t, srv.Connect(t, "frontdoor"), nil)
	in := newIntakes()
	b := &Batches{o: o, ids: testIDs, jobs: js, backlog: newBacklog(js.ctx, o, js, in), intakes: in}
	stored := bustest.JetStream(t, srv.URL)
	stream, err := stored.Stream(t.Context(), bus.StreamKeys)
	if err != nil {
		t.Fatal(err)
	}
	config := stream.CachedInfo().Config
	moved := config
	moved.Subjects = []string{"elsewhere"}
	if _, err := stored.UpdateStream(t.Context(), moved); err != nil {
		t.Fatal(err)
	}
	order := Order{Principal: ann, Key: "k", Fingerprint: "f"}
	if _, _, err := b.Create(t.Context(), order); schema.KindOf(err) != schema.KindUnavailable {
		t.Fatalf("%v", err)
	}
	if _, err := stored.UpdateStream(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	var made *journal.Manifest
	o.Store.EachOpen(schema.AllTenants(), func(m *journal.Manifest) { made = m })
	if made == nil {
		t.Fatal("there is no open batch")
	}
	if _, _, err := remember(t.Context(), o.Store, journal.KeyHash(ann.ID(), order.Key), journal.Entry{Fingerprint: order.Fingerprint, Journal: made.ID}); err != nil { // the late write
		t.Fatal(err)
	}
	m, replayed, err := b.Create(t.Context(), order)
	if err != nil {
		t.Fatal(err)
	}
	if !replayed || m.ID != made.ID || m.State != journal.Receiving {
		t.Errorf("the repeated request gets %s, which is %s; replayed %t", m.ID, m.State, replayed)
	}
	stop()
	js.stop()
	work.Wait()
}
