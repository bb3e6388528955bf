// Command callyard is the command-line tool. `up` runs a complete fabric in one process. The other
// commands are clients of its REST API. The commands are in internal/cli.
package main

import (
	"os"

	"github.com/callyard/callyard/internal/cli"
	"github.com/callyard/callyard/internal/launch"
	"github.com/callyard/callyard/internal/launch/sandbox"
	"github.com/callyard/callyard/internal/worker"
)

func main() {
	if launch.IsReaper() {
		os.Exit(launch.RunReaper(sandbox.Sweep, worker.SweepEpisodes))
	}
	os.Exit(cli.Run(os.Args[1:]))
}
