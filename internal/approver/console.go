package approver

import (
	"strings"

	"github.com/callyard/callyard/internal/console"
)

// openConsole makes the console, if there is a front door for it to show: the one of the
// configuration, or that of the same process. The result is nil where there is none.
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
