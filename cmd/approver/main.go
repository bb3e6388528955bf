// Command approver runs the approver of a fleet: the pages and the API on which people decide on
// held calls.
package main

import (
	"os"

	"github.com/callyard/callyard/internal/approver"
	"github.com/callyard/callyard/internal/lifecycle"
	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/internal/setup"
	"github.com/callyard/callyard/internal/setup/approverrole"
	"github.com/callyard/callyard/internal/telemetry"
)

func main() {
	var s approverrole.Setup
	var running *approver.Approver
	os.Exit(setup.Run(setup.Program{
		Name: "approver", Flags: []string{"approver-listen", "redis"}, Role: s.Role(),
		Part: func(p *setup.Prepared, connect setup.Connector, m *telemetry.Metrics) lifecycle.Part {
			return s.Part(p.Config, connect, p.Policy, m, p.Log, func(a *approver.Approver) {
				running = a
				p.Log.Info("approver is open", "url", a.Base())
			})
		},
		Probes: func(f *settings.File) string { return f.Approver.MetricsListen },
		Ready:  func() error { return running.Ready() },
	}))
}
