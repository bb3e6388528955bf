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
	// flushFor limits the time to send the last spans, unless traces.timeout is shorter. A collector
	// that hangs must not delay the exit until the process is killed.
	flushFor   = 3 * time.Second
	flushGrace = 2 * flushFor
)

// TracesPart opens the traces of the process under the name of its service, for the parts that
// start after it, and sends the remaining spans at the end.
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

// Spans returns the receiver of spans. It is nil until the part of [Config.TracesPart] has started.
func (c *Config) Spans() *telemetry.Traces { return c.spans }
