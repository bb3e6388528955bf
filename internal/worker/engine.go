package worker

import (
	"context"
	"log/slog"
	"strings"
	"sync"

	"github.com/callyard/callyard/internal/launch/sandbox"
	"github.com/callyard/callyard/pkg/schema"
)

// lazyEngine holds the container engine of a worker. The engine is opened when the first server
// needs it, and retried until that succeeds.
type lazyEngine struct {
	options sandbox.Options
	peers   *peers
	log     *slog.Logger
	work    sync.WaitGroup // the janitor

	mu     sync.Mutex
	engine *sandbox.Engine
	closed bool
}

func newLazyEngine(w *Worker) *lazyEngine {
	o := w.o.Sandboxes
	return &lazyEngine{
		peers: newPeers(w.id, w.o.Conn), log: w.log,
		options: sandbox.Options{
			Host: o.Engine, Certs: o.Certs, Owner: ownerName(w.id), Scope: w.o.Scope,
			Limits:   sandbox.Limits{Containers: o.Containers, Warm: o.Warm, Starts: o.Starts},
			Remember: w.launcher.Remember, Forget: w.launcher.Forget, Log: w.log,
			Forwarder: o.Forwarder, Egress: w.o.Metrics.SandboxEgress,
		},
	}
}

// ownerName converts a worker's id to a name that an engine accepts.
func ownerName(id schema.WorkerID) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' || r == '.' {
			return r
		}
		return '-'
	}, "w"+string(id))
}

// open returns the engine. The error is a *schema.Error with the reason why the engine is not
// available now.
func (d *lazyEngine) open(ctx context.Context) (*sandbox.Engine, error) {
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
	d.work.Go(func() { e.Janitor(context.Background(), d.peers.alive) }) // ends when the engine closes
	return e, nil
}

// close closes the engine, if it is open. Its users must be closed before.
func (d *lazyEngine) close() error {
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
