package frontdoor_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/callyard/callyard/internal/confirm"
	"github.com/callyard/callyard/internal/frontdoor"
	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/internal/telemetry"
	"github.com/callyard/callyard/pkg/bus/bustest"
)

// Each store is opened after others, which must be closed if it cannot be opened. goleak detects
// leaks.
func TestFrontDoorReportsWhyAStoreCannotBeOpened(t *testing.T) {
	for name, c := range map[string]struct {
		redis  *confirm.RedisOptions
		stream string // has settings with which it is unusable
		want   string
	}{
		"Redis is down": {redis: &confirm.RedisOptions{Addresses: []string{"127.0.0.1:1"}}, want: "reaching Redis at 127.0.0.1:1"},
		"call records":  {stream: "callyard_executions", want: "callyard_executions"},
		"journals":      {stream: "callyard_calls", want: "callyard_calls"},
	} {
		t.Run(name, func(t *testing.T) {
			srv := bustest.Start(t)
			if c.stream != "" {
				createMemoryStream(t, srv, c.stream)
			}
			options := settings.FrontDoorDefaults()
			options.Listen = "127.0.0.1:0"
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			d, err := frontdoor.Start(ctx, frontdoor.Options{
				Config: options, Conn: srv.Connect(t, "front"), Redis: c.redis, Metrics: telemetry.NewMetrics(), Log: slog.New(slog.DiscardHandler), Version: "test", Failed: make(chan error, 1),
			})
			if err == nil {
				stop(t, d)
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("it started, or failed without %q: %v", c.want, err)
			}
		})
	}
}

// createMemoryStream creates a stream in memory, in which Callyard's data would be lost.
func createMemoryStream(t *testing.T, srv *bustest.Server, name string) {
	t.Helper()
	nc, err := nats.Connect(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: name, Storage: jetstream.MemoryStorage}); err != nil {
		t.Fatal(err)
	}
}
