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

// Cell is one square of the matrix: a fault, whom it hits, and what is expected.
// It is shown by a campaign of its own, or by tests that are elsewhere.
type Cell struct {
	// Fault is the row, Where the column.
	Fault, Where string
	// Expect is what is promised, for people.
	Expect string
	// Campaign shows it under load, with the ledger of effects; nil where Tests do.
	Campaign *Campaign
	// Tests show it; all of them must pass.
	Tests []Test
}

// Name is the cell as it is named on the command line.
func (c *Cell) Name() string { return c.Fault + ", " + c.Where }

// Test is a test of this repository.
type Test struct {
	// Package is a folder below the root; Name may name a subtest.
	Package, Name string
}

// Outcome is what a cell came to.
type Outcome struct {
	Cell Cell
	// Passed says that what is expected was seen; LeftOut why it was not tried here.
	Passed  bool
	LeftOut string
	Took    time.Duration
	// Saw is what was seen, for people.
	Saw string
	// Report is that of the campaign.
	Report *Report
}

// Matrix has what the cells need.
type Matrix struct {
	// Root is the repository, Programs what Build and BuildClocked made of it.
	Root     string
	Programs Programs
	Seed     uint64
	Dir      string
	Log      *slog.Logger
}

// Run runs the cells in their order, the tests of all of them first, and calls each
// with every outcome. The error is about what kept them from being run.
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
		return nil // a fleet that does not come up is what was seen
	}
	o.Report, o.Passed, o.Took, o.Saw = report, report.Passed(), report.Took, report.Short()
	return nil
}

// judge says what the tests of a cell came to.
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

// NeedsClocks says whether some of the cells want the programs of [BuildClocked].
func NeedsClocks(cells []Cell) bool {
	return slices.ContainsFunc(cells, func(c Cell) bool { return c.Campaign != nil && c.Campaign.needsClocks() })
}

// Some returns the cells whose names have one of the parts that only names,
// separated by semicolons; all for "".
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
