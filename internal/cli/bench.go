package cli

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/callyard/callyard/internal/cli/benchflags"
)

func benchCommand() *cobra.Command {
	var o benchflags.Options
	cmd := &cobra.Command{
		Use:   "bench [SERVER TOOL ARGUMENTS]",
		Short: "Measure calls: Callyard next to direct clients, or one tool of a running Callyard",
		Long: "Without arguments bench builds Callyard and compares it with direct clients, one after the other in one run.\n" +
			"With --url and SERVER TOOL ARGUMENTS it loads one tool of a running Callyard.\n\n" +
			"The program callyard-bench runs the measurements. It is looked up next to callyard, then in PATH; inside Callyard's repository it is built.",
		Example: "  callyard bench --quick\n  callyard bench --endpoint peer=http://127.0.0.1:3000/servers/everything/tools/echo\n  callyard bench --figures batch,flat\n  callyard bench --url http://127.0.0.1:8080 demo echo '{\"message\":\"hi\"}'",
		Args:    takes(0, 3),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 0 && len(args) != 3 {
				return fail(exitUsage, "Pass SERVER, TOOL and the ARGUMENTS object, or none of them. Usage: %s", cmd.UseLine())
			}
			for _, h := range o.Headers {
				if !strings.Contains(h, ":") {
					return fail(exitUsage, "--header must have the form Name: value")
				}
			}
			structured := outputOf(cmd) != formatTable
			if structured && len(o.Figures) > 0 {
				return fail(exitUsage, "--output json and yaml cannot be combined with --figures, which prints a table with a verdict on each line.")
			}
			line, key := flagsOf(cmd.LocalNonPersistentFlags()), ""
			if structured {
				line = append(line, "--json")
			}
			if len(args) > 0 {
				c, err := clientFrom(cmd)
				if err != nil {
					return err
				}
				c.close()
				line, key = append(append(line, "--url="+c.base, "--"), args...), c.key
			}
			return runBench(cmd, line, key)
		},
	}
	o.Add(cmd.Flags())
	cmd.ValidArgsFunction = completing(serverIDs, toolNames)
	return cmd
}

// flagsOf returns the flags that were set, as a command line. It repeats the flag for each element
// of a list.
func flagsOf(f *pflag.FlagSet) (line []string) {
	f.VisitAll(func(f *pflag.Flag) {
		values := []string{f.Value.String()}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		for _, v := range values {
			if f.Changed {
				line = append(line, "--"+f.Name+"="+v)
			}
		}
	})
	return line
}

// benchProgram is the file name of the benchmark program.
const benchProgram = "callyard-bench"

// benchStop is the time that the program has to stop the processes that it started.
const benchStop = time.Minute

// runBench runs the benchmark program. It does not pass the key on the command line, which other
// users can read.
func runBench(cmd *cobra.Command, line []string, key string) error {
	ctx := cmd.Context()
	path, remove, err := findBench(cmd)
	if err != nil {
		return err
	}
	defer remove()
	run := exec.CommandContext(ctx, path, line...)
	run.Stdin, run.Stdout, run.Stderr = cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr()
	var report bytes.Buffer
	out := screenFor(cmd)
	if out.format == formatYAML { // the program writes JSON only
		run.Stdout = &report
	}
	run.Env = append(os.Environ(), "CALLYARD_KEY="+key)
	run.Cancel = func() error { return run.Process.Signal(os.Interrupt) }
	run.WaitDelay = benchStop
	err = run.Run()
	if report.Len() > 0 {
		if err := out.document(report.Bytes()); err != nil {
			return err
		}
	}
	var exited *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return fail(exitInterrupted, "Interrupted.")
	case errors.As(err, &exited) && exited.ExitCode() >= 0:
		return ended(exited.ExitCode())
	case err != nil:
		return fail(exitToolError, "%s cannot be run: %w", path, err)
	}
	return nil
}

// findBench returns the path of the program, and a function that removes the program if it was
// built for this run.
func findBench(cmd *cobra.Command) (path string, remove func(), err error) {
	remove = func() {}
	if self, err := os.Executable(); err == nil {
		path = filepath.Join(filepath.Dir(self), benchProgram)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return path, remove, nil
		}
	}
	if path, err = exec.LookPath(benchProgram); err == nil {
		return path, remove, nil
	}
	module, err := benchModule(".")
	if err != nil {
		return "", nil, err
	}
	dir, err := os.MkdirTemp("", "callyard-bench-")
	if err != nil {
		return "", nil, fail(exitToolError, "The benchmark cannot be built: %w", err)
	}
	remove = func() { _ = os.RemoveAll(dir) } // leftovers are in the directory for temporary files
	path = filepath.Join(dir, benchProgram)
	progress := newActivity(screenOf(cmd.ErrOrStderr()))
	progress.plain = true
	progress.step(0, 0, "building "+benchProgram+", which takes minutes the first time")
	err = buildBench(cmd.Context(), module, path)
	progress.end()
	if err != nil {
		remove()
		return "", nil, err
	}
	return path, remove, nil
}

func buildBench(ctx context.Context, module, path string) error {
	build := exec.CommandContext(ctx, "go", "build", "-o", path, "./cmd/"+benchProgram)
	build.Dir, build.Env = module, append(os.Environ(), "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil && ctx.Err() == nil {
		return fail(exitToolError, "The benchmark cannot be built in %s: %w\n%s", module, err, out)
	} else if err != nil {
		return fail(exitInterrupted, "Interrupted.")
	}
	return nil
}

// benchModule searches upwards from dir for the directory of the module bench.
func benchModule(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fail(exitUsage, "The folder cannot be read: %w", err)
	}
	for {
		module := filepath.Join(dir, "bench")
		text, err := os.ReadFile(filepath.Join(module, "go.mod"))
		if err == nil && strings.HasPrefix(string(text), "module github.com/callyard/callyard/bench\n") {
			return module, nil
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", fail(exitUsage, "Looking for the benchmark: %w", err)
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", fail(exitUsage, "The program %s was not found next to callyard or in PATH. Build it in Callyard's repository with go build -C bench -o bin/ ./cmd/%[1]s, and put it next to callyard; or run callyard bench inside the repository.", benchProgram)
		}
		dir = up
	}
}
