package batch

import (
	"context"
	"errors"
	"time"

	"github.com/callyard/callyard/internal/approval"
	"github.com/callyard/callyard/internal/calls/admission"
	"github.com/callyard/callyard/internal/calls/records"
	"github.com/callyard/callyard/internal/store/journal"
	"github.com/callyard/callyard/pkg/schema"
)

// Submission is a single call that must outlive its caller.
type Submission struct {
	// Call is the call. Submit sets its ID.
	Call        *schema.Call
	CallbackURL string
	// Key is the caller's Idempotency-Key, or "". Fingerprint is the digest of the request with
	// that key.
	Key, Fingerprint string
	// Waited reports whether the caller waits for the end.
	Waited bool
	// Verdict is the gate's decision, if the gate has already checked the call. If nil, Submit
	// asks the gate.
	Verdict *admission.Verdict
}

// keepKeys is the lifetime of an idempotency key.
const keepKeys = 24 * time.Hour

// Ticket is an accepted call.
type Ticket struct {
	CallID schema.CallID
	// Held is set if the call waits for an approval, or already has one. The call is stored with
	// the approval, and no other field except CallID is set.
	Held *approval.Held
	// Replayed reports that the call was accepted before, with the same key.
	Replayed bool
	it       *item
}

// Submit accepts a call. When it returns, the call is stored, and it runs even if the caller
// disconnects. A call that needs an approval is held instead; see [Ticket]. Errors: those of
// [admission.Gate.Check]; KindKeyReused for a key of another request; KindQuota if too many calls
// of the principal wait; KindUnavailable if nothing can be stored.
func (c *Calls) Submit(ctx context.Context, s Submission) (*Ticket, error) {
	call := s.Call
	hash, again := "", false
	if s.Key != "" {
		hash = journal.KeyHash(call.Principal.ID(), s.Key)
		kept, err := c.o.recall(ctx, &call.Principal, s.Key)
		switch {
		case err == nil:
			t, err := c.replayStored(ctx, kept, &s)
			if !errors.Is(err, errNotHeld) {
				return t, err
			}
			call.ID, again = kept.CallID, true
		case schema.KindOf(err) != schema.KindNotFound:
			return nil, err
		}
	}
	var verdict admission.Verdict
	if s.Verdict != nil {
		verdict = *s.Verdict
	} else {
		var err error
		if verdict, err = c.o.Gate.Check(call); err != nil {
			if call.ID == "" {
				call.ID = schema.NewCallID()
			}
			c.o.Chain.Refused(call, &records.Record{Durable: true}, &verdict, err)
			return nil, schema.AsError(err).WithCall(call.ID)
		}
		s.Verdict = &verdict
	}
	if verdict.Assessment.Approval != nil {
		return c.submitHeld(ctx, s, hash, verdict)
	}
	if again { // the policy requires no approval any more, and the key is that of a held call
		return nil, journal.LostKey().WithCall(call.ID)
	}
	if len(call.Extra) > maxMetadataBytes {
		return nil, schema.Errorf(schema.KindTooLarge, "The call's metadata next to the arguments has %d bytes and exceeds the limit of %d bytes.", len(call.Extra), maxMetadataBytes)
	}
	now := time.Now().UTC()
	return c.acceptor.accept(ctx, s, journal.CallRecord{
		Method: call.Method, Server: call.Server, Tool: call.Tool, ToolDigest: call.ToolDigest, Timeout: call.Timeout, Accepted: now, Expires: now.Add(c.o.Lifetime),
		Safe: call.Safe, Principal: call.Principal.Lasting(), Trace: call.Trace, CallbackURL: s.CallbackURL, ReplayOf: call.ReplayOf, Extra: call.Extra, Arguments: call.Arguments,
	}, hash)
}

// submitHeld holds the call. The approval ledger stores it, so that it outlives its caller. Its key is
// stored first: otherwise a front door that dies in between leaves a held call that the repeated
// request does not find, so that a second one is held, and both can be approved.
func (c *Calls) submitHeld(ctx context.Context, s Submission, hash string, v admission.Verdict) (*Ticket, error) {
	if s.Call.ID == "" {
		s.Call.ID = schema.NewCallID()
	}
	counted, err := c.backlog.mayQueue(&s.Call.Principal)
	if err != nil {
		return nil, err
	}
	defer counted() // the ledger counts it as held from here on
	kept, mine, err := remember(ctx, c.o.Store, hash, journal.Entry{Fingerprint: s.Fingerprint, CallID: s.Call.ID, Held: true})
	if err != nil {
		return nil, err
	}
	if !mine {
		if t, err := c.replayStored(ctx, kept, &s); !errors.Is(err, errNotHeld) {
			return t, err
		}
		s.Call.ID = kept.CallID
	}
	held, err := c.o.Desk.Open(ctx, s.Call, v.Tool.Raw, &v.Assessment, s.CallbackURL)
	if hash != "" && schema.KindOf(err) == schema.KindConflict {
		return &Ticket{CallID: s.Call.ID, Replayed: true}, nil // another request with the key was faster
	}
	if err != nil {
		return nil, err
	}
	c.o.Chain.Held(s.Call, nil, &v, held)
	return &Ticket{CallID: s.Call.ID, Held: held}, nil
}

// errNotHeld means that the key of a request is stored, and its call is not held yet.
var errNotHeld = errors.New("the call of the key is not held yet")

// holdAgain is how long a call that was not held with its key can be held with it. Later, a call that
// the ledger does not have counts as lost: it may have been held and run.
const holdAgain = time.Hour

// replayStored is replay for a repeated request. The call of its key may have been lost in the
// meantime. The error is errNotHeld if it must be held now, with the id of the entry.
func (c *Calls) replayStored(ctx context.Context, kept journal.Entry, s *Submission) (*Ticket, error) {
	t, err := replay(kept, s.Fingerprint)
	age := time.Since(kept.At)
	if err != nil || age < clocksDiffer && !kept.Held { // a replica may not have it yet
		return t, err
	}
	tenant, forgotten := s.Call.Principal.Tenant, false
	if kept.Journal != "" {
		m, getErr := c.o.Store.Get(ctx, tenant, kept.Journal)
		forgotten = getErr == nil && m.Forgotten
		_, err = c.finder.find(ctx, kept.CallID, s.Call.Principal)
	} else {
		_, _, err = c.o.Ledger.ByCall(ctx, schema.OnlyTenant(tenant), kept.CallID)
		forgotten = c.o.Ledger.Payloads.Forgets(tenant, kept.At, time.Now())
	}
	if forgotten && schema.KindOf(err) == schema.KindNotFound {
		return nil, journal.ForgottenKey(kept.CallID)
	}
	if kept.Held && age < holdAgain && schema.KindOf(err) == schema.KindNotFound {
		return nil, errNotHeld
	}
	if schema.KindOf(err) == schema.KindNotFound || schema.KindOf(err) == schema.KindOutcomeUnknown {
		return nil, journal.LostKey().WithCall(kept.CallID)
	}
	return t, nil // other errors are reported when the call is read
}
