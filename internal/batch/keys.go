package batch

import (
	"context"
	"time"

	"github.com/callyard/callyard/internal/store/journal"
	"github.com/callyard/callyard/pkg/schema"
)

// remember ties a key to a call; without a key the call is its own.
func remember(ctx context.Context, store *journal.Store, hash, fingerprint string, callID schema.CallID, journalID schema.BatchID, index uint64) (journal.Entry, bool, error) {
	if hash == "" {
		return journal.Entry{}, true, nil
	}
	return store.Remember(ctx, hash, journal.Entry{Fingerprint: fingerprint, CallID: callID, Journal: journalID, Index: index, At: time.Now().UTC()}, keepKeys)
}

func replay(kept journal.Entry, fingerprint string) (*Ticket, error) {
	if kept.Fingerprint != fingerprint && kept.Fingerprint != "" { // an owner that took over does not know it
		return nil, schema.Errorf(schema.KindKeyReused, "This Idempotency-Key was used for another request; nothing was run. Use a new key for a new request.").WithCall(kept.CallID)
	}
	return &Ticket{CallID: kept.CallID, Replayed: true}, nil
}
