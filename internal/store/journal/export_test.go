package journal

import (
	"context"

	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

// AppendHead begins a message; see appendHead.
func AppendHead(dst []byte, h *Head) []byte { return appendHead(dst, h) }

// Seize is Claim without regard to the lease of another owner, who loses the
// journal.
func (s *Store) Seize(ctx context.Context, id schema.BatchID, owner string) (*Owned, error) {
	return s.claim(ctx, schema.AllTenants(), id, owner, &Owned{force: true})
}

// OwnerOf says who holds the lease of a journal, "" for nobody.
func (s *Store) OwnerOf(ctx context.Context, id schema.BatchID) (string, error) {
	l, _, err := s.leases.of(ctx, id)
	return l.Owner, unavailable(err)
}

// Unsettled returns the calls that a person may settle.
func (p *Progress) Unsettled() map[uint64]EffectiveOutcome {
	return p.choose(EffectiveOutcome.Open)
}

// Again returns the calls that a person ordered to run again and that have no result since. Attempt is
// the last one before the order.
func (p *Progress) Again() map[uint64]EffectiveOutcome {
	return p.choose(func(s EffectiveOutcome) bool { return s.Outcome == 0 })
}

func (p *Progress) choose(fits func(EffectiveOutcome) bool) map[uint64]EffectiveOutcome {
	p.mu.Lock()
	defer p.mu.Unlock()
	found := map[uint64]EffectiveOutcome{}
	for i, s := range p.odd {
		if fits(s) {
			found[i] = s
		}
	}
	return found
}

// Logs are the logs as they are stored.
type Logs = logs

// OpenLogs opens the logs alone.
func OpenLogs(ctx context.Context, conn *bus.Conn, o Options) (*Logs, error) {
	s, err := openStreams(ctx, conn, o)
	if err != nil {
		return nil, err
	}
	return s.logs, nil
}
