package chaos

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Campaign is one fleet, one load and one list of faults.
type Campaign struct {
	Name string
	Seed uint64
	// Programs are what Build made.
	Programs Programs
	// Nodes, Doors and Workers are how many processes of each the fleet has. More than
	// one node (0 is one) are a cluster of NATS that keeps everything on each of them.
	Nodes, Doors, Workers int
	// Clients is how many clients send single calls, each one at a time.
	Clients int
	// Calls is how many calls there are in all; of these BatchCalls are lines of
	// batches of BatchSize.
	Calls, BatchCalls, BatchSize int
	// CancelCalls is how many lines a batch has that is canceled in its middle; 0
	// for none. They count next to Calls.
	CancelCalls int
	// CancelShare has one of that many stored single calls canceled by its client at a
	// moment of its own; 0 for none.
	CancelShare int
	// ToolMS is the most that one run takes, in milliseconds, after its effect.
	ToolMS int
	// Mix is which faults strike; Down, when set, is how long each of their victims
	// stays away.
	Mix  []Share
	Down time.Duration
	// Bad has the workers hold servers that misbehave, which are called all the while.
	Bad bool
	// Unguarded runs the front doors that write no intents: findings are wanted.
	Unguarded bool
	// Lax runs a NATS server that syncs now and then: findings are wanted.
	Lax bool
	// Settle is how long calls may take to end after the last fault.
	Settle time.Duration
	// Dir keeps logs and data; it is removed when there is nothing to look for.
	Dir string
	Log *slog.Logger
}

func (c *Campaign) has(kinds ...Kind) bool {
	return slices.ContainsFunc(c.Mix, func(s Share) bool { return s.Count > 0 && slices.Contains(kinds, s.Kind) })
}

func (c *Campaign) needsDisk() bool { return c.has(CutPower, FillDisk) }

func (c *Campaign) needsLAN() bool {
	return c.has(PartitionWorker, PartitionDoor, PartitionNode, SplitNodes, SlowLAN)
}

func (c *Campaign) needsClocks() bool { return c.has(JumpDoor, JumpWorker, JumpNATS) }

// program is the path of a program of the fleet.
func (c *Campaign) program(name string) string {
	if c.needsClocks() {
		return filepath.Join(c.Programs.Clocked, name)
	}
	return filepath.Join(c.Programs.Dir, name)
}

// wants says that findings are what the campaign is for.
func (c *Campaign) wants() bool { return c.Unguarded || c.Lax }

// Run runs the campaign. The report says what was found; the error is about what
// kept the campaign from being run.
func (c *Campaign) Run(ctx context.Context) (*Report, error) {
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the folder of the campaign: %w", err)
	}
	dir, err := os.MkdirTemp(c.Dir, "run-")
	if err != nil {
		return nil, fmt.Errorf("making the folder of the campaign: %w", err)
	}
	f, err := openFleet(ctx, c, dir)
	if err != nil {
		return nil, fmt.Errorf("campaign %s: %w; the logs are in %s", c.Name, err, dir)
	}
	r := newRun(c, f, dir)
	err = r.work(ctx)
	if closeErr := f.close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return nil, fmt.Errorf("campaign %s: %w; the logs are in %s", c.Name, err, dir)
	}
	if len(r.report.Findings) > 0 && !c.wants() {
		r.report.Kept = dir
		return r.report, nil
	}
	if err := os.RemoveAll(dir); err != nil {
		return nil, fmt.Errorf("removing what the campaign left: %w", err)
	}
	return r.report, nil
}

func (c *Campaign) plan() []Fault {
	faults := Plan(c.Seed, c.Mix, c.Doors, c.Workers)
	for i := range faults {
		if c.Down > 0 {
			faults[i].Down = c.Down
		}
	}
	return faults
}

// run is a campaign under way.
type run struct {
	c      *Campaign
	f      *fleet
	plan   []Fault
	gate   *gate
	book   *book
	report *Report
	began  time.Time

	effects, safeEffects string // the files of effects
}

func newRun(c *Campaign, f *fleet, dir string) *run {
	r := &run{
		c: c, f: f, plan: c.plan(), book: newBook(), began: time.Now(),
		effects: filepath.Join(dir, "effects"), safeEffects: filepath.Join(dir, "safe-effects"),
	}
	r.gate = newGate(c.Calls, len(r.plan))
	r.report = &Report{Name: c.Name, Seed: c.Seed, Doors: c.Doors, Workers: c.Workers, Clients: c.Clients, Calls: c.Calls, Wanted: c.wants(), Date: r.began.UTC()}
	return r
}

// work puts load and faults on the fleet, waits for the end of both, and looks at
// the books.
func (r *run) work(ctx context.Context) error {
	load, stop := context.WithCancel(ctx)
	defer stop()
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		r.watch(load)
	}()
	disturbed := make(chan struct{})
	go func() {
		defer close(disturbed)
		r.disturb(load)
	}()
	settled := make(chan struct{})
	go func() {
		defer close(settled)
		r.carry(load)
	}()
	err := r.strikeAll(load)
	switch {
	case errors.Is(err, errStalled):
		r.book.find("%v", err)
		err = nil
	case err == nil:
		late := time.NewTimer(r.c.Settle)
		defer late.Stop()
		select {
		case <-settled:
		case <-late.C:
			r.book.find("the clients did not come to their end within %s after the last fault", r.c.Settle)
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	stop()
	<-settled
	<-watched
	<-disturbed
	if err != nil {
		return err
	}
	r.report.Took = time.Since(r.began)
	r.c.Log.Info("the load is over; looking at the books", "campaign", r.c.Name)
	defer r.c.Log.Info("looked at the books", "campaign", r.c.Name)
	return r.judge(ctx)
}

// watch says how far the campaign is, and starts again what ended by itself.
func (r *run) watch(ctx context.Context) {
	const every = 250 * time.Millisecond
	tick := time.NewTicker(every)
	defer tick.Stop()
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for _, s := range r.f.slots() {
			s.mu.Lock()
			died := false
			if s.up {
				select {
				case <-s.proc.done:
					died, s.up = true, false
				default:
				}
			}
			s.mu.Unlock()
			if died {
				r.book.find("%s ended by itself", s.name)
				if err := s.start(ctx); err != nil && !errors.Is(err, context.Canceled) {
					r.c.Log.Warn("starting again what ended by itself", "process", s.name, "error", err)
				}
			}
		}
		r.book.sample()
		if n%int(10*time.Second/every) == 0 {
			ended, unknown, under := r.book.progress()
			r.c.Log.Info("under way", "campaign", r.c.Name, "ended", ended, "of", r.c.Calls, "unknown", unknown, "in_flight", under, "faults", r.gate.struck(), "of_faults", len(r.plan), "took", time.Since(r.began).Round(time.Second))
		}
	}
}
