// Command callyard-bench measures calls: Callyard compared with direct clients, batches
// compared with their promised figures, or one tool of a running Callyard. `callyard bench`
// starts it with the same flags and arguments. With eval-charts it draws the report of an
// evaluation, for `callyard eval report --png`.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/pflag"

	"github.com/callyard/callyard/bench"
	"github.com/callyard/callyard/bench/evalcharts"
	"github.com/callyard/callyard/internal/cli/benchflags"
	"github.com/callyard/callyard/internal/launch"
	"github.com/callyard/callyard/internal/launch/sandbox"
)

func main() {
	if launch.IsReaper() {
		os.Exit(launch.RunReaper(sandbox.Sweep))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}

const (
	exitFailed      = 1
	exitUsage       = 2
	exitInterrupted = 130
)

func run(ctx context.Context, args []string) int {
	if len(args) > 0 && args[0] == evalcharts.Command {
		if err := evalcharts.Main(args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, "callyard: "+err.Error())
			return exitUsage
		}
		return 0
	}
	o, err := options(args)
	if errors.Is(err, pflag.ErrHelp) {
		return 0
	}
	code := exitUsage
	if err == nil {
		measure := bench.Main
		if len(o.Figures) > 0 {
			measure = bench.MainFigures
		}
		code, err = exitFailed, measure(ctx, o, os.Stdout, os.Stderr)
	}
	switch {
	case err == nil:
		return 0
	case ctx.Err() != nil:
		return exitInterrupted
	}
	fmt.Fprintln(os.Stderr, "callyard: "+strings.TrimRight(err.Error(), "\n"))
	return code
}

// options parses the command line, and reads the key from the environment.
func options(args []string) (o bench.Options, err error) {
	f := pflag.NewFlagSet("callyard-bench", pflag.ContinueOnError)
	var flags benchflags.Options
	flags.Add(f)
	f.StringVar(&o.URL, "url", "", "address of the Callyard whose tool is loaded, with SERVER TOOL ARGUMENTS; its key is in CALLYARD_KEY")
	f.BoolVar(&o.JSON, "json", false, "print JSON instead of the table")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	switch rest := f.Args(); {
	case len(rest) == 0:
		o.URL = "" // useless without a tool
	case len(rest) != 3 || o.URL == "":
		return o, errors.New("name --url, SERVER, TOOL and the ARGUMENTS object")
	default:
		o.Server, o.Tool, o.Arguments = rest[0], rest[1], []byte(rest[2])
		if key := os.Getenv("CALLYARD_KEY"); key != "" {
			flags.Headers = append(flags.Headers, "Authorization: Bearer "+key)
		}
	}
	o.Headers = make(map[string]string)
	for _, h := range flags.Headers {
		k, v, ok := strings.Cut(h, ":")
		if !ok {
			return o, errors.New("--header must have the form Name: value")
		}
		o.Headers[strings.TrimSpace(k)] = strings.TrimSpace(v)
	}
	if len(flags.Figures) > 0 && o.JSON {
		return o, errors.New("--json cannot be combined with --figures, which prints a table with a verdict on each line")
	}
	o.C, o.Sizes, o.Rounds, o.Duration, o.Warmup, o.Quick = flags.Concurrency, flags.Sizes, flags.Rounds, flags.Duration, flags.Warmup, flags.Quick
	o.Figures, o.Calls, o.Only, o.URLs, o.Out, o.Bin = flags.Figures, flags.Calls, flags.Only, flags.Endpoints, flags.Out, flags.Bin
	o.MCPBridge, o.Python = flags.MCPBridge, flags.Python
	return o, nil
}
