// Command callyard is what people type: `up` runs the whole fabric in one
// process, the other commands are clients of its REST API. The commands are in
// internal/cli.
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
