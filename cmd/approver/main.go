// Command approver runs the approver of a fleet: the pages and the API on which
// people decide about held calls.
package main

import (
	"context"
	"os"

	"github.com/spf13/pflag"

	"github.com/callyard/callyard/internal/approver"
	"github.com/callyard/callyard/internal/lifecycle"
	"github.com/callyard/callyard/internal/setup"
	"github.com/callyard/callyard/internal/telemetry"
	"github.com/callyard/callyard/pkg/bus"
)

func main() { os.Exit(run()) }

func run() int {
	fs := pflag.NewFlagSet("approver", pflag.ContinueOnError)
	setup.AddFlags(fs, "approver-listen", "nats", "redis", "policy", "log-level", "log-format")
	setup.AddHealthCheck(fs)
	if goOn, code := setup.ParseFlags(fs); !goOn {
		return code
	}
	if asked, code := setup.HealthCheck(fs, "approver", setup.Approver); asked {
		return code
	}
	p, err := setup.Prepare(fs, os.Stderr, setup.Approver, nil)
	if err != nil {
		setup.Fail(os.Stderr, "approver", err)
		return 2
	}
	p.Tell()
	cfg, log, policy := p.Config, p.Log, p.Policy
	setup.TuneRuntime(1, 0)
	connect := func(ctx context.Context, name string, keep bool) (*bus.Conn, error) {
		return cfg.Connect(ctx, name, keep, log)
	}
	metrics := telemetry.NewMetrics()
	var running *approver.Approver
	err = lifecycle.Run(context.Background(), log,
		cfg.TracesPart("callyard-approver", metrics, log),
		cfg.ApproverPart(connect, policy, metrics, log, func(a *approver.Approver) {
			running = a
			log.Info("approver is open", "url", a.Base())
		}),
		p.ReloadPart(metrics),
		setup.ProbesPart(cfg.Approver.MetricsListen, metrics, log, func() error { return running.Ready() }),
	)
	if err != nil {
		setup.Fail(os.Stderr, "approver", err)
	}
	return lifecycle.ExitCode(err)
}
