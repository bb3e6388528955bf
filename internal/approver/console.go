package approver

import (
	"strings"

	"github.com/callyard/callyard/internal/console"
)

// openConsole opens the console for the configured front door, or for that of the same process. It
// returns nil if there is neither.
func openConsole(o Options) (*console.Console, error) {
	at := o.FrontDoor
	if to := o.Config.Console.FrontDoor; to != "" {
		at = func() string { return to }
	}
	if at == nil {
		return nil, nil
	}
	return console.New(console.Options{
		FrontDoor: at, Environments: strings.TrimSuffix(o.Config.Console.Environments, "/"), TraceURL: o.Config.Console.TraceURL,
		ArgumentBytes: int(o.Config.ArgumentBytes), Log: o.Log,
	})
}
