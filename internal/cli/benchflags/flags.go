// Package benchflags defines the command line of `callyard bench` and of callyard-bench, the
// program that it starts, which is built in the module bench. It is a package of its own because
// both sides use it: callyard does not link the code that measures and draws, and callyard-bench
// does not link the commands. It imports only pflag.
package benchflags

import (
	"time"

	"github.com/spf13/pflag"
)

// Options holds the values of the command line.
type Options struct {
	Concurrency, Sizes []int
	Rounds             int
	Duration, Warmup   time.Duration
	Quick              bool
	Figures            []string
	Calls              int
	Only               []string
	Endpoints          []string
	Headers            []string
	Out, Bin           string
	MCPBridge, Python  string
}

// Figures lists the values of --figures, comma-separated. The flag also accepts "all".
const Figures = "batch,flat,ingest,servers,fairness,overload,cluster,attach,published"

// Add adds the flags to the set. Parsing the set fills the options.
func (o *Options) Add(f *pflag.FlagSet) {
	f.IntSliceVarP(&o.Concurrency, "concurrency", "c", nil, "concurrent calls (default 1,10,50,200)")
	f.IntSliceVar(&o.Sizes, "size", nil, "bytes of the echoed text (default 200,20000,1000000)")
	f.IntVar(&o.Rounds, "rounds", 0, "rounds over all cells; medians are shown (default 3)")
	f.DurationVar(&o.Duration, "duration", 0, "measured time of a cell in a round (default 2s)")
	f.DurationVar(&o.Warmup, "warmup", 0, "warm-up time before it (default 500ms)")
	f.BoolVar(&o.Quick, "quick", false, "a short run: fewer cells, one round")
	f.StringSliceVar(&o.Figures, "figures", nil, "measure figures against their targets: all, or some of "+Figures)
	f.IntVar(&o.Calls, "calls", 0, "calls of the largest batch of the figures (default 1000000; with --quick 100000)")
	f.StringSliceVar(&o.Only, "only", nil, "targets to measure (default all)")
	f.StringArrayVar(&o.Endpoints, "endpoint", nil, "another HTTP endpoint to compare with, as name=url")
	f.StringArrayVar(&o.Headers, "header", nil, "header for the calls, as Name: value")
	f.StringVar(&o.MCPBridge, "mcp-bridge", "", "folder with mcp-bridge.js and its dependencies, measured by the figure published")
	f.StringVar(&o.Python, "python", "", "Python interpreter with the package toolregistry, measured by the figure published (default python3)")
	f.StringVar(&o.Out, "out", "bench-out", "folder for bench.json and bench.png")
	f.StringVar(&o.Bin, "bin", "", "folder with callyard, frontdoor, worker and nats-server (default: build them)")
}
