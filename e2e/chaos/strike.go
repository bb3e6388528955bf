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

// strikeAll runs the faults of the plan, one after the other, and waits until
// all victims are up again.
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

// errStalled ends a campaign that makes no progress any more.
var errStalled = errors.New("no call has ended, or no victim has come up")

// ripe waits until the share of calls that the fault requires has ended, and its victims are
// up. No process is hit again before it has recovered.
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

// victims returns the processes that the fault hits.
func (r *run) victims(f Fault) []*slot {
	one := func(of []*slot) []*slot { return []*slot{of[f.Victim%len(of)]} }
	switch f.Kind {
	case KillWorker, StopWorker, KillServer, StopServer, PartitionWorker, JumpWorker:
		return one(r.f.workers)
	case KillDoor, StopDoor, PartitionDoor, JumpDoor:
		return one(r.f.doors)
	case KillNode, StopNode, PartitionNode, SplitNodes:
		return one(r.f.nodes)
	case KillAll, RestartAll, SlowLAN:
		return r.f.slots()
	case CutPower:
		if f.Victim%2 == 1 {
			return r.f.slots()
		}
	}
	return r.f.nodes
}

// endWithin limits the time of a graceful stop.
const endWithin = 40 * time.Second

// strike runs the fault and returns the function that recovers from it.
func (r *run) strike(ctx context.Context, f Fault) (heal func()) {
	victims := r.victims(f)
	scar := r.book.strike(f)
	restart, undo, err := r.hurt(ctx, f, victims)
	return func() {
		pause := time.NewTimer(f.Down)
		defer pause.Stop()
		select {
		case <-pause.C:
		case <-ctx.Done():
			if undo != nil {
				_ = undo() // so that all processes can end
			}
			return
		}
		if err == nil && undo != nil {
			err = undo()
		}
		if err == nil {
			err = all(victims, restart)
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

// hurt applies the fault. Afterwards undo, unless nil, and restart for each victim
// recover from it.
func (r *run) hurt(ctx context.Context, f Fault, victims []*slot) (restart func(*slot) error, undo func() error, err error) {
	start := func(s *slot) error { return s.start(ctx) }
	back := func(s *slot) error { return s.back(ctx) }
	as := func(is Kind) bool { return f.Kind == is }
	switch f.Kind {
	case KillServer, StopServer:
		signal := syscall.SIGKILL
		if as(StopServer) {
			signal = syscall.SIGSTOP
		}
		pid, err := r.signalServer(ctx, f.Victim, signal)
		// Its worker restarts it.
		return func(*slot) error { return nil }, func() error {
			if as(StopServer) && pid > 1 {
				_ = syscall.Kill(pid, syscall.SIGCONT) // it may have ended
			}
			return nil
		}, err
	case StopWorker, StopDoor, StopNATS, StopNode:
		undo = func() error { _ = victims[0].cont(); return nil } // it may have ended
		return func(s *slot) error { return s.thaw(ctx) }, undo, victims[0].freeze()
	case PartitionWorker, PartitionDoor, PartitionNode, SplitNodes, SlowLAN:
		r.breakLAN(f, victims)
		return back, func() error { r.f.heal(); return nil }, nil
	case JumpWorker, JumpDoor, JumpNATS:
		undo = func() error { return all(victims, func(s *slot) error { return s.clock.set(0) }) }
		return back, undo, all(victims, func(s *slot) error { return s.clock.set(f.Ahead) })
	case FillDisk:
		victims[0].away()
		// A stream of nats-server that met a full disk accepts no more writes until the
		// server restarts, even if there is space again.
		return func(s *slot) error { s.end(endWithin); return start(s) }, r.f.disk.empty, r.f.disk.fill()
	case RestartAll:
		for _, of := range [][]*slot{r.f.doors, r.f.workers, r.f.nodes} {
			_ = all(of, func(s *slot) error { s.end(endWithin); return nil })
		}
		return start, nil, nil
	case CutPower:
		return start, nil, r.cut(ctx, victims)
	}
	return start, nil, all(victims, func(s *slot) error { s.kill(); return nil })
}

// The properties of a slow network: worse than between two regions.
const (
	lateBy   = 60 * time.Millisecond
	lossRate = 0.02
)

// breakLAN partitions the victims, or makes all wires bad.
func (r *run) breakLAN(f Fault, victims []*slot) {
	if f.Kind == SlowLAN {
		r.f.lan.setAll(path{late: lateBy, loss: lossRate})
		return
	}
	from := r.f.slots()
	if f.Kind == SplitNodes {
		from = r.f.nodes
	}
	victims[0].away()
	for _, s := range from {
		if s != victims[0] {
			r.f.lan.set(victims[0].host.at, s.host.at, path{cut: true})
		}
	}
}

// cut cuts the power: data that NATS has not synced is lost.
func (r *run) cut(ctx context.Context, victims []*slot) error {
	if err := r.f.nodes[0].freeze(); err != nil {
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

// signalServer sends a signal to the MCP server of a worker. It gets the PID from any front
// door that knows it.
func (r *run) signalServer(ctx context.Context, victim int, signal syscall.Signal) (pid int, err error) {
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
		if err := syscall.Kill(pid, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
			return 0, fmt.Errorf("sending %s to an MCP server: %w", signal, err)
		}
		return pid, nil
	}
	return 0, nil // no front door answers, so there is nothing to hit
}

// cont continues a frozen process without waiting for it.
func (s *slot) cont() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.proc.cmd.Process.Signal(syscall.SIGCONT)
}
