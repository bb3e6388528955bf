package audit

import (
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/callyard/callyard/internal/kit/logtest"
	"github.com/callyard/callyard/internal/kit/polltest"
	"github.com/callyard/callyard/pkg/bus/bustest"
)

// A NATS cluster without a leader refuses each attempt. The attempts repeat every second, so that an
// outage of an hour would fill the log.
func TestAnOutageOfTheTableOfHeadsIsLoggedOnce(t *testing.T) {
	s := bustest.Start(t)
	var said logtest.Log
	l, err := Open(t.Context(), s.Connect(t, "test"), Options{HeadEvery: 5 * time.Millisecond, Log: slog.New(slog.NewTextHandler(&said, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	nc, err := nats.Connect(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	var tries atomic.Int64
	if _, err := nc.Subscribe("$KV.callyard_audit_heads.>", func(*nats.Msg) { tries.Add(1) }); err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := bustest.JetStream(t, s.URL).DeleteKeyValue(t.Context(), "callyard_audit_heads"); err != nil {
		t.Fatal(err)
	}
	add(t, l, Entry{Kind: "test"})
	polltest.Until(t, "three attempts", func() bool { return tries.Load() >= 3 })
	if n := said.Count("head of the audit chain cannot be stored"); n != 1 {
		t.Errorf("the outage was logged %d times:\n%s", n, said.String())
	}
}
