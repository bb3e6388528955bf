package chaos

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"sync"
	"syscall"
	"time"
)

// strikeAll has the faults of the plan strike, one after the other, and waits until
// all that was hit is up again.
func (r *run) strikeAll(ctx context.Context) error {
	var healing sync.WaitGroup
	defer healing.Wait()
	for _, f := range r.plan {
		if err := r.ripe(ctx, f); err != nil {
			return err
		}
		healing.Go(r.strike(ctx, f))
		r.gate.fire()
	}
	return nil
}

// errStalled ends a campaign in which nothing moves any more.
var errStalled = errors.New("no call has ended, or no victim has come up")

// ripe waits until so many calls have ended as the fault wants, and its victims are
// up. Nothing is hit again before it has recovered.
func (r *run) ripe(ctx context.Context, f Fault) error {
	const look = 5 * time.Millisecond
	want := int(f.At * float64(r.c.Calls))
	victims := r.victims(f)
	tick := time.NewTicker(look)
	defer tick.Stop()
	last, since := 0, time.Now()
	for {
		ended, _, _ := r.book.progress()
		if ended > last {
			last, since = ended, time.Now()
		}
		if time.Since(since) > r.c.Settle {
			return fmt.Errorf("%w for %s, while waiting for the moment to %s", errStalled, r.c.Settle, f)
		}
		ready := ended >= want
		for _, s := range victims {
			ready = ready && s.isUp()
		}
		if ready {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("waiting for the moment to %s: %w", f, ctx.Err())
		}
	}
}

// victims are the processes that the fault hits.
func (r *run) victims(f Fault) []*slot {
	switch f.Kind {
	case KillWorker, StopWorker, KillServer:
		return []*slot{r.f.workers[f.Victim]}
	case KillDoor, StopDoor:
		return []*slot{r.f.doors[f.Victim]}
	case KillAll:
		return r.f.slots()
	case CutPower:
		if f.Victim%2 == 1 {
			return r.f.slots()
		}
	}
	return []*slot{r.f.nats}
}

// strike does it and returns what is to be done for the recovery.
func (r *run) strike(ctx context.Context, f Fault) (heal func()) {
	victims := r.victims(f)
	scar := r.book.strike(f)
	restart := func() error { return all(victims, func(s *slot) error { return s.start(ctx) }) }
	var err error
	switch f.Kind {
	case KillServer:
		err = r.killServer(ctx, f.Victim)
		restart = func() error { return nil } // the worker sees to it
	case StopWorker, StopDoor, StopNATS:
		err = victims[0].freeze()
		restart = func() error { return victims[0].thaw(ctx) }
	case CutPower:
		err = r.cut(ctx, victims)
	default:
		err = all(victims, func(s *slot) error { s.kill(); return nil })
	}
	return func() {
		pause := time.NewTimer(f.Down)
		defer pause.Stop()
		select {
		case <-pause.C:
		case <-ctx.Done():
			if f.Kind == StopWorker || f.Kind == StopDoor || f.Kind == StopNATS {
				_ = victims[0].cont() // so that it can end
			}
			return
		}
		if err == nil {
			err = restart()
		}
		if err != nil {
			if !errors.Is(err, context.Canceled) {
				r.book.find("%s: %v", f, err)
			}
			return
		}
		r.book.back(scar)
	}
}

// cut takes the power: what NATS has not synced is gone.
func (r *run) cut(ctx context.Context, victims []*slot) error {
	if err := r.f.nats.freeze(); err != nil {
		return err
	}
	if err := r.f.disk.copy(ctx); err != nil {
		return err
	}
	if err := all(victims, func(s *slot) error { s.kill(); return nil }); err != nil {
		return err
	}
	return r.f.disk.swap(ctx)
}

// killServer ends the MCP server of a worker, whichever front door knows its pid.
func (r *run) killServer(ctx context.Context, victim int) error {
	for door := range r.f.doors {
		h, err := r.f.holders(ctx, door, onceServer)
		if err != nil || len(h.Workers) == 0 {
			continue
		}
		sort.Slice(h.Workers, func(i, j int) bool { return h.Workers[i].ID < h.Workers[j].ID })
		pid := h.Workers[victim%len(h.Workers)].PID
		if pid <= 1 {
			continue // it is starting
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("killing an MCP server: %w", err)
		}
		return nil
	}
	return nil // nobody can be asked at the moment: there is nothing to kill
}

// cont lets a frozen process go on, as it is.
func (s *slot) cont() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.proc.cmd.Process.Signal(syscall.SIGCONT)
}
