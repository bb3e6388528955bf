package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Plan is the plan of a run.
type Plan struct {
	Targets     []Target
	Concurrency []int // concurrent calls, one lane for each
	Sizes       []int // bytes of the message
	Rounds      int   // measurements of each cell
	// Warmup precedes each measurement and is not counted; Duration is the measured time.
	Warmup, Duration time.Duration
	// Progress is called after each measurement. It may be nil and must not block.
	Progress func(Progress)
}

// Progress describes a completed measurement, with its number and the total number.
type Progress struct {
	Done, All         int
	Round             int
	Target            string
	Size, Concurrency int
	Sample            Sample
}

// firstLanes is the concurrency of the first warm-up of each target.
const firstLanes = 10

// check validates a plan before a long run.
func (p Plan) check() error {
	switch {
	case len(p.Targets) == 0:
		return errors.New("there is nothing to load: no target is left")
	case len(p.Concurrency) == 0 || slices.Min(p.Concurrency) < 1 || slices.Max(p.Concurrency) > 10_000:
		return errors.New("concurrency must be one or more numbers from 1 to 10000")
	case len(p.Sizes) == 0 || slices.Min(p.Sizes) < 1:
		return errors.New("sizes must be one or more numbers of bytes above zero")
	case p.Rounds < 1:
		return errors.New("rounds must be at least 1")
	case p.Duration <= 0 || p.Warmup < 0:
		return errors.New("the duration of a measurement must be above zero")
	}
	names := make(map[string]bool)
	for _, t := range p.Targets {
		if names[t.Name()] {
			return fmt.Errorf("two targets are called %q; give each a name of its own", t.Name())
		}
		names[t.Name()] = true
	}
	return nil
}

// Run measures every combination of target, size and concurrency, Rounds times.
// Targets of the same size and concurrency are measured one after the other, in an order that
// rotates, so that changes of the machine's load affect all of them. It returns
// early, with ctx's error, when ctx ends. Failed calls are part of the
// report, not an error.
func Run(ctx context.Context, p Plan) (*Report, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	report := newReport(p)
	var (
		load gauge
		turn int
		done int
		all  = p.Rounds * len(p.Sizes) * len(p.Concurrency) * len(p.Targets)
	)
	// Warm up, because servers with a JIT are slow at first.
	for _, t := range p.Targets {
		if _, err := load.measure(ctx, t, slices.Min(p.Sizes), firstLanes, 2*p.Warmup, 0); err != nil {
			return nil, err
		}
	}
	for round := range p.Rounds {
		for s, size := range p.Sizes {
			for c, concurrency := range p.Concurrency {
				for i := range p.Targets {
					t := (i + turn) % len(p.Targets)
					sample, err := load.measure(ctx, p.Targets[t], size, concurrency, p.Warmup, p.Duration)
					if err != nil {
						return nil, err
					}
					cell := &report.Cells[(s*len(p.Concurrency)+c)*len(p.Targets)+t]
					cell.Rounds = append(cell.Rounds, sample)
					done++
					if p.Progress != nil {
						p.Progress(Progress{
							Done: done, All: all, Round: round + 1,
							Target: cell.Target, Size: size, Concurrency: concurrency, Sample: sample,
						})
					}
				}
				turn++
			}
		}
	}
	report.sum()
	return report, nil
}

// newReport creates the cells, ordered by size, concurrency and target.
func newReport(p Plan) *Report {
	r := &Report{
		Date: time.Now().UTC().Truncate(time.Second), Machine: thisMachine(),
		WarmupSeconds: p.Warmup.Seconds(), DurationSeconds: p.Duration.Seconds(), RoundCount: p.Rounds,
		Sizes: p.Sizes, Concurrency: p.Concurrency,
	}
	for _, t := range p.Targets {
		r.Targets = append(r.Targets, t.Name())
	}
	for _, size := range p.Sizes {
		for _, c := range p.Concurrency {
			for _, name := range r.Targets {
				r.Cells = append(r.Cells, Cell{Target: name, Size: size, Concurrency: c})
			}
		}
	}
	return r
}
