// Command worker runs a worker of a fleet: it holds MCP servers and runs the
// calls that come over NATS.
package main

import (
	"context"
	"os"

	"github.com/spf13/pflag"

	"github.com/callyard/callyard/internal/launch"
	"github.com/callyard/callyard/internal/launch/box"
	"github.com/callyard/callyard/internal/lifecycle"
	"github.com/callyard/callyard/internal/setup"
	"github.com/callyard/callyard/internal/telemetry"
	"github.com/callyard/callyard/internal/worker"
	"github.com/callyard/callyard/pkg/bus"
)

func main() {
	if launch.IsGuard() {
		os.Exit(launch.RunGuard(box.Sweep))
	}
	os.Exit(run())
}

func run() int {
	fs := pflag.NewFlagSet("worker", pflag.ContinueOnError)
	setup.AddFlags(fs, "servers", "nats", "policy", "log-level", "log-format")
	setup.AddHealthCheck(fs)
	if goOn, code := setup.ParseFlags(fs); !goOn {
		return code
	}
	if asked, code := setup.HealthCheck(fs, "worker", setup.Worker); asked {
		return code
	}
	p, err := setup.Prepare(fs, os.Stderr, setup.Worker, nil)
	if err != nil {
		setup.Fail(os.Stderr, "worker", err)
		return 2
	}
	p.Tell()
	cfg, log, served, policy := p.Config, p.Log, p.Served, p.Policy
	setup.TuneRuntime(1, len(served))
	setup.LeaveProcessors()
	connect := func(ctx context.Context, name string, keep bool) (*bus.Conn, error) {
		return cfg.Connect(ctx, name, keep, log)
	}
	metrics := telemetry.NewMetrics()
	var running *worker.Worker
	err = lifecycle.Run(context.Background(), log,
		cfg.TracesPart("callyard-worker", metrics, log),
		cfg.WorkerPart(connect, policy, served, metrics, log, func(w *worker.Worker) {
			running = w
			log.Info("worker is up", "worker", w.ID(), "servers", len(served))
		}),
		p.ReloadPart(metrics),
		setup.ProbesPart(cfg.Worker.Listen, metrics, log, func() error { return running.Ready() }),
	)
	if err != nil {
		setup.Fail(os.Stderr, "worker", err)
	}
	return lifecycle.ExitCode(err)
}
