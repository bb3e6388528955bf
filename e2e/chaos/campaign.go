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
	// Programs are the programs that Build created.
	Programs Programs
	// Nodes, Doors and Workers are the numbers of processes of each kind. More than
	// one node (0 means one) form a NATS cluster that stores everything on each of them.
	Nodes, Doors, Workers int
	// Clients is the number of clients that send single calls, each one at a time.
	Clients int
	// Calls is the total number of calls. BatchCalls of them are lines of
	// batches of BatchSize.
	Calls, BatchCalls, BatchSize int
	// CancelCalls is the number of lines of a batch that is canceled halfway. 0
	// means no such batch. They are not included in Calls.
	CancelCalls int
	// CancelShare makes clients cancel one of that many stored single calls at a random
	// moment. 0 means none.
	CancelShare int
	// ToolMS is the maximum duration of a run after its effect, in milliseconds.
	ToolMS int
	// Mix lists the faults. Down, if set, is the time that each of their victims
	// is down.
	Mix  []Share
	Down time.Duration
	// Bad adds misbehaving servers to the workers, which are called during the whole load.
	Bad bool
	// Unguarded runs the front doors that write no intents. The campaign must have findings.
	Unguarded bool
	// Lax runs a NATS server that syncs only from time to time. The campaign must have findings.
	Lax bool
	// Settle limits the time in which calls must end after the last fault.
	Settle time.Duration
	// Dir holds logs and data. It is removed if there is nothing to investigate.
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

// program returns the path of a program of the fleet.
func (c *Campaign) program(name string) string {
	if c.needsClocks() {
		return filepath.Join(c.Programs.Clocked, name)
	}
	return filepath.Join(c.Programs.Dir, name)
}

// wants reports whether the campaign must have findings.
func (c *Campaign) wants() bool { return c.Unguarded || c.Lax }

// Run runs the campaign. The report holds the findings. The error reports that the
// campaign could not run.
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

// run is a running campaign.
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

// work applies load and faults to the fleet, waits for the end of both, and compares
// the records.
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

// watch logs the progress of the campaign, and restarts processes that ended by themselves.
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
