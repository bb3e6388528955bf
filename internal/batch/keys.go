package batch

import (
	"context"
	"time"

	"github.com/callyard/callyard/internal/approval"
	"github.com/callyard/callyard/internal/store/journal"
	"github.com/callyard/callyard/pkg/schema"
)

// remember stores the entry of a key, unless the key has one already. It returns the stored entry, and
// true if it is this one. An empty hash belongs to the call itself and is not stored.
func remember(ctx context.Context, store *journal.Store, hash string, e journal.Entry) (journal.Entry, bool, error) {
	if hash == "" {
		return journal.Entry{}, true, nil
	}
	return store.Remember(ctx, hash, e, keepKeys)
}

// recall returns the entry of a principal's key. Version 0.1 stored keys by the name of the
// principal alone, for keepKeys. If a tenant other than the default one has no entry, such an
// old entry counts if it is of a call or batch of the principal. Versions after 0.2 need not look
// for old entries.
func (o *Options) recall(ctx context.Context, who *schema.Principal, key string) (journal.Entry, error) {
	kept, err := o.Store.Recall(ctx, journal.KeyHash(who.ID(), key))
	if schema.KindOf(err) != schema.KindNotFound || who.Tenant.Is(schema.DefaultTenant) {
		return kept, err
	}
	former, again := o.Store.Recall(ctx, journal.KeyHash(schema.PrincipalID{Name: who.Name}, key))
	if again == nil {
		again = o.checkOwner(ctx, who, &former)
	}
	if schema.KindOf(again) == schema.KindNotFound {
		return kept, err
	}
	return former, again
}

// checkOwner returns nil for an entry of a call or batch of the principal, and KindNotFound for one of
// another principal.
func (o *Options) checkOwner(ctx context.Context, who *schema.Principal, e *journal.Entry) error {
	var by schema.Principal
	switch {
	case e.Journal == "":
		a, _, err := o.Ledger.ByCall(ctx, schema.OnlyTenant(who.Tenant), e.CallID)
		if schema.KindOf(err) == schema.KindNotFound && o.Ledger.Payloads.Forgets(who.Tenant, e.At, time.Now()) {
			return nil // the requester was deleted with the payloads; the call must not run again
		}
		if err != nil {
			return err
		}
		by = approval.Requester(a)
	case e.CallID == "":
		m, err := o.Store.Get(ctx, who.Tenant, e.Journal)
		if err != nil {
			return err
		}
		by = m.Principal
	default:
		c, err := o.Store.FindCall(ctx, schema.OnlyTenant(who.Tenant), e.Journal, e.Index)
		if err != nil {
			return err
		}
		by = c.Principal
	}
	if !by.Same(who) {
		return schema.Errorf(schema.KindNotFound, "The idempotency key is unknown, or has been deleted.")
	}
	return nil
}

func replay(kept journal.Entry, fingerprint string) (*Ticket, error) {
	if kept.Fingerprint != fingerprint && kept.Fingerprint != "" { // a later owner of the journal does not know the fingerprint
		return nil, schema.Errorf(schema.KindKeyReused, "This Idempotency-Key was used for another request; nothing was run. Use a new key for a new request.").WithCall(kept.CallID)
	}
	return &Ticket{CallID: kept.CallID, Replayed: true}, nil
}
