package setup

import (
	"context"
	"log/slog"

	"github.com/callyard/callyard/internal/lifecycle"
	"github.com/callyard/callyard/internal/telemetry"
)

// probesPart serves /livez, /readyz and /metrics at the address without credentials. With an empty
// address it does nothing. Once the part has started, ready is called for each request; it returns
// the reason why the process is not ready.
func probesPart(listen string, m *telemetry.Metrics, log *slog.Logger, ready func() error) lifecycle.Part {
	if listen == "" {
		return lifecycle.Part{Name: "probes"}
	}
	var p *telemetry.Probes
	return lifecycle.Part{
		Name: "probes",
		Start: func(context.Context) (err error) {
			p, err = telemetry.ServeProbes(listen, m, ready, log)
			return err
		},
		Stop: func(ctx context.Context) error { return p.Close(ctx) },
	}
}
