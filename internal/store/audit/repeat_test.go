package audit

import (
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/bus/bustest"
)

// TestChainContinuesAfterARepeatedWriteIsRefused answers a write as a cluster does that is still storing
// an earlier attempt. Nothing is stored then, and no other process writes the chain.
func TestChainContinuesAfterARepeatedWriteIsRefused(t *testing.T) {
	srv := bustest.Start(t)
	l := open(t, srv.Connect(t, "test"), Options{})
	add(t, l, full())
	sync1(t, l)
	js := bustest.JetStream(t, srv.URL)
	stream, err := js.Stream(t.Context(), bus.StreamAudit)
	if err != nil {
		t.Fatal(err)
	}
	config := stream.CachedInfo().Config
	moved := config
	moved.Subjects = []string{"elsewhere"}
	if _, err := js.UpdateStream(t.Context(), moved); err != nil {
		t.Fatal(err)
	}
	nc, err := nats.Connect(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	refused := make(chan struct{}, 100)
	sub, err := nc.Subscribe(bus.SubjectAudit+"*", func(m *nats.Msg) {
		if m.Respond([]byte(`{"error":{"code":400,"err_code":10164,"description":"wrong last sequence"},"stream":"s","seq":0}`)) == nil {
			refused <- struct{}{}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	add(t, l, full())
	<-refused
	if err := sub.Unsubscribe(); err != nil {
		t.Fatal(err)
	}
	if _, err := js.UpdateStream(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	sync1(t, l)
	if r := verified(t, l); !r.OK() || r.Records != 2 {
		t.Errorf("%+v", r)
	}
}
