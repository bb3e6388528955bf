package ledger_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/kit/polltest"
	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/schema"
)

// Without a connection nothing is sent, so the caller may send the same request again.
func TestChangesWithoutAConnectionAreRetryable(t *testing.T) {
	srv := bustest.Start(t)
	conn := srv.Connect(t, "test")
	l := open(t, conn, ledger.Options{})
	a := create(t, l, `{}`)
	srv.Stop()
	polltest.Until(t, "the connection is lost", func() bool { return conn.Ready() != nil })
	_, created := l.Create(t.Context(), question(), []byte(`{}`))
	_, changed := l.Change(t.Context(), schema.DefaultTenant, a.ID, to(ledger.Running))
	for what, err := range map[string]error{"create": created, "change": changed} {
		if e := schema.AsError(err); !errors.Is(err, bus.ErrNotConnected) || !e.Retryable || e.RetryAfter == 0 || strings.Contains(e.Detail, "buffer") {
			t.Errorf("%s: %+v", what, e)
		}
	}
}
