// Command frontdoor runs the front door of a fleet: the REST API in front of NATS.
package main

import (
	"os"

	"github.com/callyard/callyard/internal/frontdoor"
	"github.com/callyard/callyard/internal/lifecycle"
	"github.com/callyard/callyard/internal/setup"
	"github.com/callyard/callyard/internal/setup/frontdoorrole"
	"github.com/callyard/callyard/internal/telemetry"
)

func main() {
	var s frontdoorrole.Setup
	os.Exit(setup.Run(setup.Program{
		Name: "frontdoor", Flags: []string{"listen", "redis"}, Role: s.Role(),
		Part: func(p *setup.Prepared, connect setup.Connector, m *telemetry.Metrics) lifecycle.Part {
			return s.Part(p.Config, connect, p.Policy, m, p.Log, func(d *frontdoor.FrontDoor) { p.Log.Info("front door is open", "url", d.URL()) })
		},
	}))
}
