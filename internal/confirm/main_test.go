package confirm_test

import (
	"log/slog"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/callyard/callyard/internal/confirm"
	"github.com/callyard/callyard/internal/confirm/confirmtest"
	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/pkg/bus/bustest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func openLedger(t *testing.T, s *bustest.Server) *ledger.Ledger {
	t.Helper()
	l, err := ledger.Open(t.Context(), s.Connect(t, "test"), ledger.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}

// newTokenStore returns tokens on the ledger; gate may be nil.
func newTokenStore(t *testing.T, l *ledger.Ledger, gate *confirm.Redis) confirmtest.Store {
	t.Helper()
	tokens := confirm.New(l, gate)
	t.Cleanup(tokens.Close)
	return confirmtest.Store{Tokens: tokens, Ledger: l}
}

func openGate(t *testing.T, o confirm.RedisOptions) *confirm.Redis {
	t.Helper()
	o.Timeout = time.Minute // the server may stand still for a moment
	r, err := confirm.OpenRedis(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// spend holds a call and confirms it.
func spend(t *testing.T, h confirmtest.Store) error {
	t.Helper()
	_, token := h.Hold(t, time.Now(), time.Minute)
	_, err := h.Spend(t.Context(), token, "a", time.Now())
	return err
}
