package ended

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/callyard/callyard/internal/kit/sleep"
	"github.com/callyard/callyard/internal/store/endtable"
	"github.com/callyard/callyard/pkg/bus"
)

const (
	// openFor limits the time that a start waits for the table, because NATS does not answer denied
	// requests. openFirst is the first retry interval, and openEvery the last.
	openFor   = 10 * time.Second
	openFirst = time.Second
	openEvery = 10 * time.Second
)

// Grants holds the ended grants. It is safe for concurrent use. A nil *Grants has none.
type Grants struct {
	conn  *bus.Conn
	log   *slog.Logger
	table atomic.Pointer[bus.Table[endtable.End]] // nil until it is open
	stop  context.CancelFunc
	work  sync.WaitGroup
}

// Open opens the table of ended grants. If that fails, it logs the reason and retries until
// [Grants.Close]; until then, no grant counts as ended. ctx limits the first attempt. The caller owns
// the connection.
func Open(ctx context.Context, conn *bus.Conn, log *slog.Logger) *Grants {
	g := &Grants{conn: conn, log: log}
	if err := g.open(ctx); err != nil {
		log.Warn("ended grants cannot be read, so access tokens of ended grants are accepted until they expire: run `callyard init`, and update NATS to the permissions of this version", "error", err)
	}
	running, stop := context.WithCancel(context.Background())
	g.stop = stop
	g.work.Go(func() { g.openLater(running) })
	return g
}

func (g *Grants) open(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, openFor)
	defer cancel()
	t, err := endtable.Open(ctx, g.conn)
	if err == nil {
		g.table.Store(t)
	}
	return err
}

// openLater retries until the table is open or ctx ends.
func (g *Grants) openLater(ctx context.Context) {
	for wait := openFirst; g.table.Load() == nil && sleep.For(wait, ctx.Done()); wait = min(2*wait, openEvery) {
		if err := g.open(ctx); err != nil {
			g.log.Debug("the table of ended grants cannot be opened", "error", err)
			continue
		}
		g.log.Info("ended grants can be read; their access tokens are refused")
	}
}

// Has reports whether a grant has ended.
func (g *Grants) Has(id string) bool {
	if g == nil || id == "" {
		return false
	}
	t := g.table.Load()
	if t == nil {
		return false
	}
	_, ok := t.Get(id)
	return ok
}

// Close stops the retries and closes the table.
func (g *Grants) Close() {
	if g == nil {
		return
	}
	g.stop()
	g.work.Wait()
	if t := g.table.Load(); t != nil {
		t.Close()
	}
}
