package confirm

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// probeEvery is the interval between write probes of Redis.
const probeEvery = 5 * time.Second

// health tracks whether Redis accepts tokens. It logs each change and feeds the metric, because
// otherwise only callers with confirmations would notice.
type health struct {
	log  *slog.Logger
	down atomic.Bool
	stop context.CancelFunc
	work sync.WaitGroup
}

// watch probes Redis with a write periodically until the gate is closed. A ping is not enough:
// a full Redis and a replica answer it too.
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

// probeScript writes a key that no token can have, and deletes it.
const probeScript = `
redis.call('HSET', KEYS[1], 'approval', '')
return redis.call('DEL', KEYS[1])`

func (r *Redis) probe(ctx context.Context) {
	switch err := r.ask.Run(ctx, r.client, []string{key("probe")}).Err(); {
	case err == nil:
		r.health.works()
		r.lookForLost(ctx)
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
