package batch

import (
	"maps"
	"time"

	"github.com/callyard/callyard/internal/kit/backoff"
	"github.com/callyard/callyard/internal/store/journal"
	"github.com/callyard/callyard/pkg/schema"
)

// claimAgain has the delays before the next claim of a journal that could not be claimed, or that
// was released with calls without a result. Some faults last until the journal expires, such as a
// record that cannot be read.
var claimAgain = backoff.Policy{First: time.Second, Max: 30 * time.Second}

// claimSoon limits the delay after a claim that NATS did not answer. Its journals must not wait for
// long when NATS answers again.
const claimSoon = 4 * time.Second

// claim is the last claim of a journal by this front door, and the number of claims since a call of
// the journal ended.
type claim struct {
	at       time.Time
	count    int
	ended    uint64 // calls with a result
	noAnswer bool   // NATS did not answer the claim
}

// claims has the claims of the last minute.
type claims map[schema.BatchID]*claim

// next reports whether a journal without an owner is to be claimed now, and returns the claim.
func (cs claims) next(m *journal.Manifest) (c *claim, due bool) {
	if c = cs[m.ID]; c == nil {
		c = &claim{}
		cs[m.ID] = c
	}
	if n := m.Counts.Total(); n > c.ended {
		c.ended, c.count = n, min(c.count, 1)
	}
	if c.count > 0 && time.Since(c.at) < c.delay() {
		return c, false
	}
	c.at, c.count = time.Now(), c.count+1
	return c, true
}

func (c *claim) delay() time.Duration {
	d := claimAgain.Delay(c.count - 1)
	if c.noAnswer {
		d = min(d, claimSoon)
	}
	return d
}

// prune removes old claims.
func (cs claims) prune() {
	maps.DeleteFunc(cs, func(_ schema.BatchID, c *claim) bool { return time.Since(c.at) > 2*claimAgain.Max })
}
