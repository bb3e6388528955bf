// Command chaos runs the fault campaigns of package chaos over the programs of this
// repository, prints what they found, and writes reports and timelines. It ends with
// 1 when a promise was broken.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/callyard/callyard/e2e/chaos"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	size := flag.String("size", string(chaos.Full), "short, medium or full")
	seed := flag.Uint64("seed", 1, "the same seed draws the same faults")
	out := flag.String("out", "chaos-out", "folder of reports and timelines")
	only := flag.String("only", "", "run the campaigns with these names, separated by commas")
	built := flag.String("programs", "", "folder of programs that an earlier run built (default: build them)")
	work := flag.String("work", "", "folder of data and logs (default a temporary one)")
	flag.Parse()
	if flag.NArg() > 0 {
		return fmt.Errorf("there are no arguments, and %q is one", flag.Arg(0))
	}
	root, err := chaos.FindRoot()
	if err != nil {
		return err
	}
	if *work == "" {
		if *work, err = os.MkdirTemp("", "callyard-chaos-"); err != nil {
			return fmt.Errorf("making a temporary folder: %w", err)
		}
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	programs := chaos.ProgramsIn(*built)
	if *built == "" {
		log.Info("building the programs")
		if programs, err = chaos.Build(ctx, root, *work); err != nil {
			return err
		}
	}
	campaigns, err := chaos.Campaigns(chaos.Size(*size), *seed, programs, filepath.Join(*work, "runs"), log)
	if err != nil {
		return err
	}
	broken, ran := 0, 0
	for _, c := range campaigns {
		if *only != "" && !named(*only, c.Name) {
			continue
		}
		ran++
		report, err := c.Run(ctx)
		if err != nil {
			return err
		}
		report.Table(os.Stdout)
		if err := report.Write(*out); err != nil {
			return err
		}
		if !report.Passed() {
			broken++
		}
	}
	switch {
	case ran == 0:
		return fmt.Errorf("there is no campaign %q", *only)
	case broken > 0:
		return errors.New("promises were broken; what is left of the runs is in " + *work)
	}
	return os.RemoveAll(*work)
}

func named(only, name string) bool {
	for part := range strings.SplitSeq(only, ",") {
		if strings.TrimSpace(part) == name {
			return true
		}
	}
	return false
}
