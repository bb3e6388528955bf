package setup

import (
	"context"
	"log/slog"
	"time"

	"github.com/callyard/callyard/internal/lifecycle"
	"github.com/callyard/callyard/internal/telemetry"
	"github.com/callyard/callyard/pkg/schema"
)

const (
	// flushFor is how long the last spans may take to be sent, where traces.timeout is
	// not less. A collector that hangs is no reason to be killed.
	flushFor   = 3 * time.Second
	flushGrace = 2 * flushFor
)

// TracesPart opens the traces of the process, under the name of its service, for the
// parts that start after it, and sends what is left at the end.
func (c *Config) TracesPart(service string, m *telemetry.Metrics, log *slog.Logger) lifecycle.Part {
	return lifecycle.Part{
		Name: "traces", Grace: flushGrace,
		Start: func(ctx context.Context) (err error) {
			c.spans, err = telemetry.OpenTraces(ctx, telemetry.TraceOptions{
				Config: c.Traces, Service: service, Version: Version(), Instance: schema.NewID(service), Metrics: m, Log: log,
			})
			return err
		},
		Stop: func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, min(flushFor, c.Traces.Timeout))
			defer cancel()
			if err := c.spans.Close(ctx); err != nil {
				log.Warn("the last traces could not be sent", "error", err)
			}
			return nil
		},
	}
}

// Spans is where spans go, nil before the part of [Config.TracesPart] has started.
func (c *Config) Spans() *telemetry.Traces { return c.spans }
