// Command worker runs a worker of a fleet. It runs MCP servers and executes the calls that arrive
// over NATS.
package main

import (
	"os"

	"github.com/callyard/callyard/internal/launch"
	"github.com/callyard/callyard/internal/launch/sandbox"
	"github.com/callyard/callyard/internal/lifecycle"
	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/internal/setup"
	"github.com/callyard/callyard/internal/setup/workerrole"
	"github.com/callyard/callyard/internal/telemetry"
	"github.com/callyard/callyard/internal/worker"
)

func main() {
	if launch.IsReaper() {
		os.Exit(launch.RunReaper(sandbox.Sweep))
	}
	s := workerrole.Setup{Leave: setup.Terminate}
	var running *worker.Worker
	os.Exit(setup.Run(setup.Program{
		Name: "worker", Flags: []string{"servers"}, Role: s.Role(),
		Part: func(p *setup.Prepared, connect setup.Connector, m *telemetry.Metrics) lifecycle.Part {
			setup.LimitProcessors()
			return s.Part(p.Config, connect, p.Policy, m, p.Log, func(w *worker.Worker) {
				running = w
				p.Log.Info("worker is up", "worker", w.ID(), "servers", len(p.Servers))
			})
		},
		Probes: func(f *settings.File) string { return f.Worker.Listen },
		Ready:  func() error { return running.Ready() },
	}))
}
