package confirm

import (
	"context"
	"slices"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/pkg/schema"
)

// lookAtOnce is the number of tokens that one round trip to Redis looks for.
const lookAtOnce = 1000

// lost finds tokens of held calls that Redis has lost: it was flushed, started without its data, or
// failed over to a replica that lagged. Without it only the callers would notice.
type lost struct {
	mu      sync.Mutex
	pending func() []*ledger.Approval // the held calls that need their token; nil before Watch
	seen    map[string]bool           // hashes of their tokens that Redis had at the last look
}

// Watch logs when Redis has lost tokens of held calls. Only calls for which needs returns true are
// reported. needs must not modify or keep its argument.
func (t *Tokens) Watch(needs func(*ledger.Approval) bool) {
	if t.gate == nil {
		return
	}
	l := &t.gate.lost
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pending = func() (found []*ledger.Approval) {
		t.ledger.EachUnended(schema.AllTenants(), func(a *ledger.Approval) {
			if a.State == ledger.Pending && a.TokenHash != "" && needs(a) {
				found = append(found, a)
			}
		})
		return found
	}
}

// lookForLost reports the tokens that Redis had at the last look and has no longer, each once. A
// token that this process never saw there is not reported: another process may use another Redis.
// After an error the next look compares again.
func (r *Redis) lookForLost(ctx context.Context) {
	l := &r.lost
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.pending == nil {
		return
	}
	seen := make(map[string]bool)
	var gone []*ledger.Approval
	for some := range slices.Chunk(l.pending(), lookAtOnce) {
		found, err := r.client.Pipelined(ctx, func(p redis.Pipeliner) error {
			for _, a := range some {
				p.Exists(ctx, key(a.TokenHash))
			}
			return nil
		})
		if err != nil {
			return // the next probe reports a Redis that does not answer
		}
		for i, a := range some {
			if n, _ := found[i].(*redis.IntCmd); n.Val() > 0 {
				seen[a.TokenHash] = true
			} else if l.seen[a.TokenHash] {
				gone = append(gone, a)
			}
		}
	}
	l.seen = seen
	if len(gone) > 0 {
		r.health.log.Error("Redis has lost the confirmation tokens of held calls: their callers cannot confirm them and must send them again; the held calls expire", "calls", len(gone), "one_of_them", gone[0].CallID)
	}
}
