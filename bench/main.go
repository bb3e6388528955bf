package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Main implements `callyard bench`: it starts the targets, runs the plan, prints the table
// to stdout and progress to stderr, writes the files and stops the targets. A target that
// cannot be started is left out and reported as an error at the end, after the results.
// The programs that the bench starts are built in a temporary directory and keep
// their data there.
//
// The direct session requires the start of the program's main that package launch
// describes.
func Main(ctx context.Context, o Options, stdout, stderr io.Writer) (err error) {
	o = o.filled()
	var set targets
	defer func() { err = errors.Join(err, set.close()) }()
	if o.URL != "" {
		e, err := o.endpoint()
		if err != nil {
			return err
		}
		set.list, o.Sizes = []Target{e}, []int{len(e.fixed)}
	} else if err := set.start(ctx, o, stderr); err != nil {
		return err
	}

	show := newProgressLine(stderr)
	report, err := Run(ctx, Plan{
		Targets: set.list, Concurrency: o.C, Sizes: o.Sizes, Rounds: o.Rounds,
		Warmup: o.Warmup, Duration: o.Duration, Progress: show.tell,
	})
	show.end()
	if err != nil {
		return err
	}
	report.Absent = set.absent
	write := report.WriteTable
	if o.JSON {
		write = report.WriteJSON
	}
	if err := write(stdout); err != nil {
		return err
	}
	if o.Out != "" {
		if err := writeFiles(report, o.Out); err != nil {
			return err
		}
		if o.JSON {
			stdout = stderr
		}
		fmt.Fprintf(stdout, "\nThe figures are in %s, the picture in %s.\n", filepath.Join(o.Out, jsonFile), filepath.Join(o.Out, plotFile))
	}
	if n := len(set.absent); n > 0 {
		return fmt.Errorf("%d of the targets could not be started; the reasons are above", n)
	}
	return nil
}

// Names of the files in Options.Out.
const (
	jsonFile = "bench.json"
	plotFile = "bench.png"
)

func writeFiles(r *Report, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // results are for everybody
		return fmt.Errorf("making the directory for the results: %w", err)
	}
	return errors.Join(
		writeFile(filepath.Join(dir, jsonFile), r.WriteJSON),
		writeFile(filepath.Join(dir, plotFile), r.WritePNG),
	)
}

func writeFile(name string, write func(io.Writer) error) error {
	f, err := os.Create(name)
	if err != nil {
		return fmt.Errorf("writing the results: %w", err)
	}
	if err := write(f); err != nil {
		return errors.Join(err, f.Close())
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("writing the results: %w", err)
	}
	return nil
}
