// Command frontdoor runs the front door of a fleet: the REST API before NATS.
package main

import (
	"context"
	"os"

	"github.com/spf13/pflag"

	"github.com/callyard/callyard/internal/frontdoor"
	"github.com/callyard/callyard/internal/lifecycle"
	"github.com/callyard/callyard/internal/setup"
	"github.com/callyard/callyard/internal/telemetry"
	"github.com/callyard/callyard/pkg/bus"
)

func main() { os.Exit(run()) }

func run() int {
	fs := pflag.NewFlagSet("frontdoor", pflag.ContinueOnError)
	setup.AddFlags(fs, "listen", "nats", "redis", "policy", "log-level", "log-format")
	setup.AddHealthCheck(fs)
	if goOn, code := setup.ParseFlags(fs); !goOn {
		return code
	}
	if asked, code := setup.HealthCheck(fs, "frontdoor", setup.FrontDoor); asked {
		return code
	}
	p, err := setup.Prepare(fs, os.Stderr, setup.FrontDoor, nil)
	if err != nil {
		setup.Fail(os.Stderr, "frontdoor", err)
		return 2
	}
	p.Tell()
	cfg, log, policy := p.Config, p.Log, p.Policy
	setup.TuneRuntime(1, 0)
	connect := func(ctx context.Context, name string, keep bool) (*bus.Conn, error) {
		return cfg.Connect(ctx, name, keep, log)
	}
	metrics := telemetry.NewMetrics()
	err = lifecycle.Run(context.Background(), log, cfg.TracesPart("callyard-frontdoor", metrics, log), cfg.FrontDoorPart(connect, policy, metrics, log, func(d *frontdoor.FrontDoor) {
		log.Info("front door is open", "url", d.URL())
	}), p.ReloadPart(metrics))
	if err != nil {
		setup.Fail(os.Stderr, "frontdoor", err)
	}
	return lifecycle.ExitCode(err)
}
