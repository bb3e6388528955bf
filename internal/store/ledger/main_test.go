package ledger_test

import (
	"context"
	"crypto/rand"
	"log/slog"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/schema"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, c *bus.Conn, o ledger.Options) *ledger.Ledger {
	t.Helper()
	o.Log = slog.New(slog.DiscardHandler)
	l, err := ledger.Open(t.Context(), c, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}

func start(t *testing.T) *ledger.Ledger {
	t.Helper()
	return open(t, bustest.Start(t).Connect(t, "test"), ledger.Options{})
}

// question returns an approval of a new call.
func question() *ledger.Approval {
	return &ledger.Approval{
		CallID:  schema.NewCallID(),
		Binding: ledger.Binding{Requester: ledger.Requester{Name: "ann", Owner: "payments"}, Server: "bank", Tool: "pay", PolicyVersion: "7", Level: 2, Deadline: time.Now().Add(time.Hour)},
		Reasons: []string{"it moves money <now>"}, Rule: []byte(`{"quorum":2}`), Expires: time.Now().Add(10 * time.Minute).UTC(),
	}
}

func create(t *testing.T, l *ledger.Ledger, args string) *ledger.Approval {
	t.Helper()
	a := question()
	if _, err := l.Create(t.Context(), a, []byte(args)); err != nil {
		t.Fatal(err)
	}
	return a
}

// pending returns the pending approvals, oldest first.
func pending(l *ledger.Ledger, of schema.Tenants) (all []*ledger.Approval) {
	l.EachPending(of, func(a *ledger.Approval) { all = append(all, a) })
	return all
}

func to(state ledger.State) func(*ledger.Approval) error {
	return func(a *ledger.Approval) error {
		a.State = state
		if state == ledger.Running {
			a.Runner = &ledger.Runner{FrontDoor: "fd-1", Started: time.Now()}
		}
		return nil
	}
}

func noise(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b)
	return b
}

// within waits for a signal of the thing under test.
func within[T any](t *testing.T, what string, c <-chan T) T {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	select {
	case v := <-c:
		return v
	case <-ctx.Done():
		t.Fatalf("%s did not happen", what)
		panic("unreachable")
	}
}
