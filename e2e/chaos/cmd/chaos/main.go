// Command chaos runs the fault campaigns of package chaos on the programs of this
// repository, prints the findings, and writes reports and timelines. It exits with
// 1 if a promise was broken.
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
	matrix := flag.Bool("matrix", false, "run the fault matrix in place of the campaigns; --only then has parts of names of cells, separated by semicolons")
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
	if *matrix {
		m := &chaos.Matrix{Root: root, Programs: programs, Seed: *seed, Dir: *work, Log: log}
		if err := runMatrix(ctx, m, *only, *built == "", *out); err != nil {
			return err
		}
		return os.RemoveAll(*work)
	}
	campaigns, err := chaos.Campaigns(ctx, chaos.Size(*size), *seed, programs, filepath.Join(*work, "runs"), log)
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

// runMatrix runs the cells, and writes their table and reports into the folder out.
func runMatrix(ctx context.Context, m *chaos.Matrix, only string, build bool, out string) error {
	cells, err := chaos.Some(chaos.Cells(), only)
	if err != nil {
		return err
	}
	if build && chaos.NeedsClocks(cells) {
		m.Log.Info("building the programs whose clocks can be set")
		if err := chaos.BuildClocked(ctx, m.Root, &m.Programs); err != nil {
			return err
		}
	}
	bad := 0
	outcomes, err := m.Run(ctx, cells, func(o chaos.Outcome) {
		if !o.Passed && o.LeftOut == "" {
			bad++
		}
		if o.Report != nil {
			o.Report.Table(os.Stdout)
			if err := o.Report.Write(out); err != nil {
				m.Log.Error("writing a report", "error", err)
			}
		}
		fmt.Printf("%-11s  %s: %s%s\n\n", o.Result(), o.Cell.Name(), o.Saw, o.LeftOut)
	})
	if err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o750); err != nil {
		return fmt.Errorf("making the folder of reports: %w", err)
	}
	page, err := os.Create(filepath.Join(out, "matrix.md"))
	if err != nil {
		return fmt.Errorf("writing the matrix: %w", err)
	}
	if err := errors.Join(chaos.WritePage(page, outcomes), page.Close()); err != nil {
		return err
	}
	fmt.Printf("%d cells; %d are not as expected; the table is in %s\n", len(outcomes), bad, page.Name())
	if bad > 0 {
		return errors.New("promises were broken; what is left of the runs is in " + m.Dir)
	}
	return nil
}

func named(only, name string) bool {
	for part := range strings.SplitSeq(only, ",") {
		if strings.TrimSpace(part) == name {
			return true
		}
	}
	return false
}
