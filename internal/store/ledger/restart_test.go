package ledger_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/embedded"
	"github.com/callyard/callyard/internal/kit/polltest"
	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/bus/porttest"
	"github.com/callyard/callyard/pkg/schema"
)

func TestLedgerSurvivesNATSRestart(t *testing.T) {
	address, dir, log := porttest.Address(t), t.TempDir(), slog.New(slog.DiscardHandler)
	up := func() *embedded.Server {
		s, err := embedded.Start(embedded.Options{Dir: dir, Listen: address, Log: log})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	connect := func(name string) *bus.Conn {
		c, err := bus.Connect(t.Context(), bus.Options{URL: "nats://" + address, Name: name, Log: log})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		return c
	}
	s := up()
	one, other := connect("a"), connect("b")
	l, watching := open(t, one, ledger.Options{}), open(t, other, ledger.Options{})
	a := create(t, l, `{"n":1}`)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := l.Change(ctx, schema.DefaultTenant, a.ID, to(ledger.Approved)); schema.KindOf(err) != schema.KindUnavailable {
		t.Errorf("while NATS is down: %v", err)
	}
	seen := make(chan ledger.State, 10)
	watching.Watch(schema.AllTenants(), func(a *ledger.Approval) { seen <- a.State })
	s = up()
	defer func() { _ = s.Close() }()
	polltest.Until(t, "both are connected", func() bool { return one.Ready() == nil && other.Ready() == nil })
	if _, err := l.Change(t.Context(), schema.DefaultTenant, a.ID, to(ledger.Approved)); err != nil {
		t.Fatalf("after the restart: %v", err)
	}
	if b, err := l.Arguments(t.Context(), schema.DefaultTenant, a.ID); err != nil || string(b) != `{"n":1}` {
		t.Errorf("arguments %s, %v", b, err)
	}
	// A watch that reconnects may repeat earlier changes.
	for s := within(t, "word of the change", seen); s != ledger.Approved; s = within(t, "word of the change", seen) {
		if s != ledger.Pending {
			t.Errorf("seen %s", s)
		}
	}
}
