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

// ripe waits until that many calls have ended as the fault wants, and its victims are
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

// endWithin is how long a process may take to end in good order.
const endWithin = 40 * time.Second

// strike does it and returns what is to be done for the recovery.
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
				_ = undo() // so that everybody can end
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

// hurt does what the fault does. Afterwards undo, where there is something to be
// undone, and restart for each victim make it good.
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
		// Its worker sees to it.
		return func(*slot) error { return nil }, func() error {
			if as(StopServer) && pid > 1 {
				_ = syscall.Kill(pid, syscall.SIGCONT) // it may be gone
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
		// A stream of nats-server that met a full disk takes nothing more until the
		// server is started again, however much room there is.
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

// How bad a slow network is: between two regions rather than two racks, and worse.
const (
	lateBy   = 60 * time.Millisecond
	lossRate = 0.02
)

// breakLAN parts the victims from others, or makes all wires bad.
func (r *run) breakLAN(f Fault, victims []*slot) {
	if f.Kind == SlowLAN {
		r.f.lan.setAll(wire{late: lateBy, loss: lossRate})
		return
	}
	from := r.f.slots()
	if f.Kind == SplitNodes {
		from = r.f.nodes
	}
	victims[0].away()
	for _, s := range from {
		if s != victims[0] {
			r.f.lan.set(victims[0].host.at, s.host.at, wire{cut: true})
		}
	}
}

// cut takes the power: what NATS has not synced is gone.
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

// signalServer sends a signal to the MCP server of a worker, whichever front door
// knows its pid.
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
	return 0, nil // nobody can be asked at the moment: there is nothing to hit
}

// cont continues a frozen process, as it is.
func (s *slot) cont() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.proc.cmd.Process.Signal(syscall.SIGCONT)
}
