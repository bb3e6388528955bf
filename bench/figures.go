package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Finding is one line of a figure: the measured value, the required value, and whether it
// holds. A finding without a requirement is informational.
type Finding struct {
	Figure, What, Got, Want string
	Holds                   bool
}

// figure measures one performance promise. It measures the compared targets in turn, on
// processes that it starts itself.
type figure struct {
	name string
	run  func(context.Context, *figureEnv) error
}

// figures returns the figures that [Options].Figures can name, in the order in which they run.
func figures() []figure {
	return []figure{
		{"batch", batchFigure}, {"flat", flatFigure}, {"ingest", ingestFigure}, {"servers", serversFigure},
		{"fairness", fairnessFigure}, {"overload", overloadFigure}, {"cluster", clusterFigure},
		{"attach", attachFigure}, {"published", publishedFigure},
	}
}

// FigureNames returns the names of all figures.
func FigureNames() (names []string) {
	for _, f := range figures() {
		names = append(names, f.name)
	}
	return names
}

// figureEnv is the shared environment of the figures, and their findings.
type figureEnv struct {
	o        Options
	root     string // of the repository
	bin      binaries
	scripted string   // the scripted server of the tests
	command  []string // of the everything server
	peers    []*Endpoint
	dir      string
	say      io.Writer
	found    []Finding
	rows     []comparison // of the published benchmark
	load     gauge
	name     string // of the running figure
	starts   int
}

// info records an informational finding.
func (s *figureEnv) info(what, format string, args ...any) {
	s.note(Finding{What: what, Got: fmt.Sprintf(format, args...), Holds: true})
}

// check records a ratio or a size, and whether it meets its requirement.
func (s *figureEnv) check(what string, got float64, unit string, holds bool, want string) {
	s.note(Finding{What: what, Got: strings.TrimSpace(fmt.Sprintf("%.3g %s", got, unit)), Want: want, Holds: holds})
}

func (s *figureEnv) note(f Finding) {
	f.Figure = s.name
	s.found = append(s.found, f)
	fmt.Fprintf(s.say, "  %s: %s\n", f.What, f.Got)
}

// folder creates a folder for the processes of a figure.
func (s *figureEnv) folder() (string, error) {
	s.starts++
	dir := filepath.Join(s.dir, fmt.Sprintf("%s-%d", s.name, s.starts))
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", fmt.Errorf("making a directory: %w", err)
	}
	return dir, nil
}

// MainFigures measures the named figures, or all, and prints the findings to stdout and
// progress to stderr. The error lists the requirements that do not hold.
func MainFigures(ctx context.Context, o Options, stdout, stderr io.Writer) (err error) {
	o = o.filled()
	for _, name := range o.Figures {
		if name != "all" && !slices.Contains(FigureNames(), name) {
			return fmt.Errorf("there is no figure %q; choose from %s", name, strings.Join(FigureNames(), ", "))
		}
	}
	s := &figureEnv{o: o, say: stderr}
	if s.dir, err = os.MkdirTemp("", "callyard-figures-"); err != nil {
		return fmt.Errorf("making a temporary directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(s.dir)) }()
	if err := s.prepare(ctx); err != nil {
		return err
	}
	var failed error
	for _, f := range figures() {
		if !slices.Contains(o.Figures, f.name) && !slices.Contains(o.Figures, "all") {
			continue
		}
		fmt.Fprintf(stderr, "%s\n", f.name)
		s.name = f.name
		if err := f.run(ctx, s); err != nil {
			failed = errors.Join(failed, fmt.Errorf("the figure %s could not be measured: %w", f.name, err))
		}
		if ctx.Err() != nil {
			break
		}
	}
	return errors.Join(failed, s.write(stdout))
}

// write writes the findings, and the published benchmark in a separate table.
func (s *figureEnv) write(w io.Writer) (err error) {
	if len(s.found) > 0 {
		err = writeFindings(w, s.found)
	}
	if len(s.rows) == 0 {
		return err
	}
	figures, wrong := readPublished(publishedText)
	if wrong != nil {
		return errors.Join(err, wrong)
	}
	return errors.Join(err, writeComparisons(w, s.rows, figures))
}

// prepare builds the programs that the figures start.
func (s *figureEnv) prepare(ctx context.Context) error {
	root := s.o.Root
	var err error
	if root == "" {
		if root, err = findRoot("."); err != nil {
			return err
		}
	}
	s.root = root
	if s.peers, err = s.o.peers(); err != nil {
		return err
	}
	if s.command = s.o.Command; len(s.command) == 0 {
		if s.command, err = everythingCommand(root); err != nil {
			return err
		}
	}
	if s.bin = binariesIn(s.o.Bin); s.o.Bin == "" {
		if _, err = build(ctx, root, s.dir, false); err != nil {
			return err
		}
		if s.bin, err = build(ctx, root, s.dir, true); err != nil {
			return err
		}
	}
	s.scripted = filepath.Join(s.dir, "scripted-server")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", s.scripted, "./servers/scripted")
	cmd.Dir = filepath.Join(root, "e2e")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building the scripted server (%w): %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}

// writeFindings writes a table. The error lists the requirements that do not hold.
func writeFindings(w io.Writer, found []Finding) error {
	rows := [][]string{{"figure", "what", "measured", "asked for", ""}}
	var missed []string
	for _, f := range found {
		verdict := ""
		if f.Want != "" {
			verdict = "holds"
		}
		if !f.Holds {
			verdict = "MISSED"
			missed = append(missed, f.Figure+": "+f.What)
		}
		rows = append(rows, []string{f.Figure, f.What, f.Got, f.Want, verdict})
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %s\n", time.Now().UTC().Format("2006-01-02"), thisMachine())
	writeAligned(&b, rows, func(column int) bool { return column != 2 })
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("writing the table: %w", err)
	}
	if len(missed) > 0 {
		return fmt.Errorf("missed: %s", strings.Join(missed, "; "))
	}
	return nil
}
