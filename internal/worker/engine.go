package worker

import (
	"context"
	"log/slog"
	"strings"
	"sync"

	"github.com/callyard/callyard/internal/launch/sandbox"
	"github.com/callyard/callyard/pkg/schema"
)

// dock is the container engine of a worker. It is opened when the first server
// needs it, and tried again until it is there.
type dock struct {
	options sandbox.Options
	peers   *peers
	log     *slog.Logger
	work    sync.WaitGroup // the janitor

	mu     sync.Mutex
	engine *sandbox.Engine
	closed bool
}

func newDock(w *Worker) *dock {
	o := w.o.Sandboxes
	return &dock{
		peers: newPeers(w.id, w.o.Conn), log: w.log,
		options: sandbox.Options{
			Host: o.Engine, Certs: o.Certs, Owner: ownerName(w.id), Scope: w.o.Scope,
			Limits:   sandbox.Limits{Containers: o.Containers, Warm: o.Warm, Starts: o.Starts},
			Remember: w.launcher.Remember, Forget: w.launcher.Forget, Log: w.log,
			Forwarder: o.Forwarder, Egress: w.o.Metrics.SandboxEgress,
		},
	}
}

// ownerName is a worker's id as an engine takes names.
func ownerName(id schema.WorkerID) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' || r == '.' {
			return r
		}
		return '-'
	}, "w"+string(id))
}

// open returns the engine. The error is a *schema.Error that says why there is
// none now.
func (d *dock) open(ctx context.Context) (*sandbox.Engine, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, schema.Errorf(schema.KindUnavailable, "The worker is shutting down.")
	}
	if d.engine != nil {
		return d.engine, nil
	}
	e, err := sandbox.Open(ctx, d.options)
	if err != nil {
		return nil, err
	}
	d.engine = e
	if err := d.peers.watch(); err != nil {
		d.log.Warn("leftover containers of other workers are removed only at their deadline", "error", err)
	}
	d.work.Go(func() { e.Janitor(context.Background(), d.peers.alive) }) // ends with the engine
	return e, nil
}

// close closes the engine, where there is one. What used it was closed before.
func (d *dock) close() error {
	d.mu.Lock()
	d.closed = true
	e := d.engine
	d.mu.Unlock()
	if e == nil {
		return nil
	}
	err := e.Close()
	d.work.Wait()
	d.peers.stop()
	return err
}
