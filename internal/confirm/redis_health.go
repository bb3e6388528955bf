package confirm

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// probeEvery is how often Redis is asked whether it takes tokens.
const probeEvery = 5 * time.Second

// health is whether Redis takes tokens. Operators learn it from one log line when that
// changes, and from the metric: only callers with confirmations would notice otherwise.
type health struct {
	log  *slog.Logger
	down atomic.Bool
	stop context.CancelFunc
	work sync.WaitGroup
}

// watch writes a probe now and then, until the gate is closed: a Redis that is full, or a
// replica, answers a ping as well.
func (r *Redis) watch(log *slog.Logger) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	r.health.log = log
	ctx, stop := context.WithCancel(context.Background())
	r.health.stop = stop
	r.health.work.Go(func() {
		tick := time.NewTicker(probeEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				r.probe(ctx)
			case <-ctx.Done():
				return
			}
		}
	})
}

// probeScript writes what no token has as its name, and leaves nothing.
const probeScript = `
redis.call('HSET', KEYS[1], 'approval', '')
return redis.call('DEL', KEYS[1])`

func (r *Redis) probe(ctx context.Context) {
	switch err := r.ask.Run(ctx, r.client, []string{key("probe")}).Err(); {
	case err == nil:
		r.health.works()
	case ctx.Err() == nil:
		r.health.fails(err)
	}
}

func (h *health) fails(err error) {
	if !h.down.Swap(true) {
		h.log.Error("Redis does not take confirmation tokens; until it does, calls that their callers confirm are refused", "error", err)
	}
}

func (h *health) works() {
	if h.down.Load() && h.down.Swap(false) {
		h.log.Info("Redis takes confirmation tokens again")
	}
}

func (h *health) close() {
	h.stop()
	h.work.Wait()
}
