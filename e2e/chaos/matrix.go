package chaos

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Cell is one cell of the matrix: a fault, its target, and the expected behavior. It is
// covered by a separate campaign, or by tests in other packages.
type Cell struct {
	// Fault is the row, Where the column.
	Fault, Where string
	// Expect is the promise, for people.
	Expect string
	// Campaign covers the cell under load, with the ledger of effects. It is nil if Tests do.
	Campaign *Campaign
	// Tests cover the cell; all of them must pass.
	Tests []Test
}

// Name returns the name of the cell on the command line.
func (c *Cell) Name() string { return c.Fault + ", " + c.Where }

// Test is a test of this repository.
type Test struct {
	// Package is a folder below the root; Name may name a subtest.
	Package, Name string
}

// Outcome is the outcome of a cell.
type Outcome struct {
	Cell Cell
	// Passed reports that the expected behavior was seen. LeftOut is the reason why the cell
	// was not run.
	Passed  bool
	LeftOut string
	Took    time.Duration
	// Saw describes the observed behavior, for people.
	Saw string
	// Report is the report of the campaign.
	Report *Report
}

// Matrix holds the inputs of the cells.
type Matrix struct {
	// Root is the repository, and Programs the output of Build and BuildClocked.
	Root     string
	Programs Programs
	Seed     uint64
	Dir      string
	Log      *slog.Logger
}

// Run runs the cells in order, the tests of all of them first, and calls each
// with every outcome. The error reports that the cells could not run.
func (m *Matrix) Run(ctx context.Context, cells []Cell, each func(Outcome)) ([]Outcome, error) {
	noNetwork := CanMakeNetworks(ctx)
	tests, err := runTests(ctx, m.Root, testsOf(cells), m.Log)
	if err != nil {
		return nil, err
	}
	var all []Outcome
	for _, cell := range cells {
		o := Outcome{Cell: cell}
		switch c := cell.Campaign; {
		case c == nil:
			o.judge(tests)
		case c.needsLAN() && noNetwork != nil:
			o.LeftOut = "it needs root on Linux: " + noNetwork.Error()
		case c.needsDisk() && !canCutPower:
			o.LeftOut = "it needs the loop mounts of Linux"
		default:
			if err := m.campaign(ctx, &o); err != nil {
				return all, err
			}
		}
		all = append(all, o)
		each(o)
	}
	return all, nil
}

// campaign runs the campaign of a cell.
func (m *Matrix) campaign(ctx context.Context, o *Outcome) error {
	c := *o.Cell.Campaign
	c.Name, c.Seed, c.Programs, c.Log = o.Cell.Name(), m.Seed, m.Programs, m.Log
	c.Dir, c.Settle = filepath.Join(m.Dir, "runs"), settleWithin
	m.Log.Info("cell", "fault", o.Cell.Fault, "where", o.Cell.Where)
	report, err := c.Run(ctx)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		o.Saw = err.Error()
		return nil // a fleet that does not start is an outcome, not an error
	}
	o.Report, o.Passed, o.Took, o.Saw = report, report.Passed(), report.Took, report.Short()
	return nil
}

// judge sets the outcome of a cell from its tests.
func (o *Outcome) judge(ends map[Test]testEnd) {
	o.Passed = len(o.Cell.Tests) > 0
	var bad []string
	for _, t := range o.Cell.Tests {
		end := ends[t]
		o.Took += end.took
		if !end.passed {
			o.Passed = false
			bad = append(bad, t.Name)
		}
	}
	switch n := len(o.Cell.Tests); {
	case len(bad) > 0:
		o.Saw = "failed: " + strings.Join(bad, ", ")
	case n == 1:
		o.Saw = "the test passed"
	default:
		o.Saw = fmt.Sprintf("%d tests passed", n)
	}
}

func testsOf(cells []Cell) (tests []Test) {
	for _, c := range cells {
		for _, t := range c.Tests {
			if !slices.Contains(tests, t) {
				tests = append(tests, t)
			}
		}
	}
	return tests
}

// NeedsClocks reports whether a cell needs the programs of [BuildClocked].
func NeedsClocks(cells []Cell) bool {
	return slices.ContainsFunc(cells, func(c Cell) bool { return c.Campaign != nil && c.Campaign.needsClocks() })
}

// Some returns the cells whose names contain one of the parts in only, which are
// separated by semicolons. If only is empty, it returns all cells.
func Some(cells []Cell, only string) ([]Cell, error) {
	if only == "" {
		return cells, nil
	}
	var some []Cell
	for _, c := range cells {
		for part := range strings.SplitSeq(only, ";") {
			if strings.Contains(c.Name(), strings.TrimSpace(part)) {
				some = append(some, c)
				break
			}
		}
	}
	if len(some) == 0 {
		return nil, errors.New("there is no cell like " + only)
	}
	return some, nil
}
