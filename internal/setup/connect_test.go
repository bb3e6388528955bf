package setup

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/callyard/callyard/internal/kit/logtest"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/bus/porttest"
)

func TestConnectingToANATSThatIsAwayIsLoggedAFewTimes(t *testing.T) {
	address := porttest.Address(t)
	synctest.Test(t, func(t *testing.T) {
		var text logtest.Log
		var c Config
		c.NATS.URL = "nats://" + address
		ctx, cancel := context.WithTimeout(t.Context(), 14*time.Second)
		defer cancel()
		if _, err := c.ConnectAs(ctx, bus.Options{Name: "n", Log: slog.New(slog.NewTextHandler(&text, nil))}); err == nil {
			t.Error("connected to a server that does not run")
		}
		if n := text.Count("not connected to NATS yet"); n != 2 {
			t.Errorf("%d lines for 14 s:\n%s", n, text.String())
		}
	})
}
