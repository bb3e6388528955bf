package ledger

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/callyard/callyard/internal/tenants/datakey"
	"github.com/callyard/callyard/internal/tenants/retention"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

// Options configures a ledger. Zero fields select their defaults.
type Options struct {
	// MaxBytes limits the ledger on disk; 0 means no limit. A full ledger refuses writes.
	MaxBytes int64
	// MaxOpen limits the approvals that wait or run (default 10,000), and MaxOpenBytes the bytes of
	// their arguments (default 512 MiB). Above either limit, new approvals are refused. One
	// requester may use a quarter of each.
	MaxOpen      int
	MaxOpenBytes int64
	// MaxEnded limits the ended approvals that are kept in memory for lists (default 10,000).
	// Older ones can be found only by id.
	MaxEnded int
	// LostBefore is the time at which a loss of records was accepted: older approvals cannot be
	// approved or run any more. Zero means no loss.
	LostBefore time.Time
	// DataKeys encrypts arguments, results and reasons. If nil, they are not encrypted.
	DataKeys *datakey.Ring
	// Retention gives the tenants whose held calls are deleted earlier, by [Payloads.Forget]. It is
	// not needed by a process that never calls that method.
	Retention retention.Periods
	// Log receives errors that cannot be returned to a caller. Required.
	Log *slog.Logger
}

const (
	// keepFor is how long an approval is kept after its last change, and its arguments after it was
	// created.
	keepFor = 30 * 24 * time.Hour
	// MaxHeld is how long a call can be held, so that its arguments still exist when it runs.
	MaxHeld         = keepFor - time.Hour
	defaultMaxEnded = 10_000

	// maxTries limits the attempts at a change that conflicts with other writers. One writer
	// succeeds per round, so it also limits the concurrent writers of one record.
	maxTries = 64
	// settle is how long a writer that lost the reply checks whether its write was stored.
	// readTimeout bounds one read for that.
	settle      = 5 * time.Second
	readTimeout = 4 * time.Second
)

// Revision is the version of a record. Greater revisions are newer.
type Revision uint64

// Ledger stores the durable state of approvals. It is safe for concurrent use.
type Ledger struct {
	// Payloads deletes held calls after their retention period.
	Payloads *Payloads

	store   *Records
	allowed *bus.Table[Permission]
	reads   *sharedReads
	turns   turns
	view    *view
	watch   *bus.StreamWatch
	limits  limits
	forget  *forgetter
	lost    time.Time
	log     *slog.Logger
}

// Open opens the ledger on a connection, creates it if it does not exist, and reads its contents; ctx
// bounds that. The caller still owns the connection.
func Open(ctx context.Context, conn *bus.Conn, o Options) (*Ledger, error) {
	store, err := OpenRecords(ctx, conn, o)
	if err != nil {
		return nil, err
	}
	l := &Ledger{store: store, reads: newReads(store), turns: turns{byID: map[schema.ApprovalID]*turn{}}, view: newView(cmp.Or(o.MaxEnded, defaultMaxEnded)), limits: newLimits(o), lost: o.LostBefore, log: o.Log}
	l.Payloads = &Payloads{l}
	l.view.retention, l.view.maxAge = o.Retention, store.records.MaxAge()
	if l.allowed, err = bus.OpenTable(ctx, conn, permissionsTable, func(p *Permission) string { return bus.Token(p.ID) }, nil); err != nil {
		return nil, err
	}
	if l.watch, err = store.watch(ctx, l.seen); err != nil {
		l.allowed.Close()
		return nil, err
	}
	l.forget = startForgetter(l)
	o.DataKeys.OnDestroyed(l.view.erase)
	return l, nil
}

// Close stops the watches and waits for them.
func (l *Ledger) Close() {
	l.forget.close()
	l.watch.Close()
	l.allowed.Close()
	l.reads.close()
}

// Create stores a new approval with its arguments, in one write if they fit into a message. It sets
// ID, Binding.CallID, Binding.ApprovalID, the digests of arguments and definition, BindingDigest,
// ArgumentsSize, State and Created if they are empty, and refuses contradicting values. Errors: a
// conflict if the call already has an approval; [schema.KindQuota] if the requester has reached its
// limit of held calls; [schema.KindUnavailable] if the total limit is reached. Arguments over 4 KiB are
// stored separately, and deleted when the call has ended. An approval under a standing permission
// starts in state running.
func (l *Ledger) Create(ctx context.Context, a *Approval, args []byte) (Revision, error) {
	if err := complete(a, args); err != nil {
		return 0, err
	}
	if err := l.view.reserve(a, l.limits); err != nil {
		return 0, err
	}
	defer l.view.release(a.ID)
	a.Write = rand.Text()
	head, err := l.store.encode(ctx, a)
	if err != nil {
		return 0, err
	}
	body, err := l.opening(ctx, a, args, len(head))
	if err != nil {
		return 0, unavailable(err, a.CallID)
	}
	seq, err := l.store.create(ctx, a.ID, head, body)
	if err != nil {
		if nothingWritten(err) {
			return 0, unavailable(err, a.CallID)
		}
		mine, at, again := l.reads.landed(ctx, a.ID, []string{a.Write})
		switch {
		case mine != nil:
			seq = at.Sequence
		case errors.Is(err, bus.ErrConflict):
			return 0, schema.Errorf(schema.KindConflict, "Call %s is already held, as approval %s.", a.CallID, a.ID).WithCall(a.CallID)
		default:
			return 0, doubtful(errors.Join(err, again), a.CallID)
		}
	}
	kept := a.Clone()
	kept.Definition = nil
	l.view.put(kept, 0, seq)
	if len(body) > 0 {
		l.view.keepArguments(a.ID, args)
	}
	return Revision(seq), nil
}

// complete sets the members of a new approval that are empty, and refuses contradicting ones.
func complete(a *Approval, args []byte) error {
	a.ID, a.State = cmp.Or(a.ID, IDFor(a.CallID)), cmp.Or(a.State, Pending)
	b := &a.Binding
	b.CallID, b.ApprovalID = cmp.Or(b.CallID, a.CallID), cmp.Or(b.ApprovalID, a.ID)
	sum := schema.Digest(args)
	b.ArgumentsDigest = cmp.Or(b.ArgumentsDigest, sum)
	a.ArgumentsSize, a.Apart = int64(len(args)), placeOf(len(args)) == inHeld
	if len(a.Definition) > 0 {
		b.ToolDefinitionDigest = cmp.Or(b.ToolDefinitionDigest, schema.Digest(a.Definition))
	}
	a.BindingDigest = cmp.Or(a.BindingDigest, b.Digest())
	if a.Created.IsZero() {
		a.Created = time.Now().UTC()
	}
	wrong := ""
	switch {
	case a.CallID == "":
		wrong = "names no call"
	case a.ID != IDFor(a.CallID), b.CallID != a.CallID, b.ApprovalID != a.ID:
		wrong = "belongs to another call"
	case a.State != Pending && !a.permitted():
		wrong = "does not begin pending"
	case a.State == Pending && (len(a.Warrant) > 0 || a.Permission != "" || len(a.Decisions) > 0):
		wrong = "was decided before it was requested"
	case a.Expires.IsZero():
		wrong = "never expires"
	case b.ArgumentsDigest != sum:
		wrong = "binds other arguments"
	case len(a.Definition) > 0 && b.ToolDefinitionDigest != schema.Digest(a.Definition):
		wrong = "binds another tool definition"
	case a.BindingDigest != b.Digest():
		wrong = "has the digest of another binding"
	default:
		return nil
	}
	return schema.Errorf(schema.KindInternal, "The approval %s; it was not stored.", wrong).WithCall(a.CallID)
}

// Get returns the current approval of these tenants. It may be stale: [Ledger.Change] decides.
func (l *Ledger) Get(ctx context.Context, of schema.Tenants, id schema.ApprovalID) (*Approval, Revision, error) {
	a, r, err := l.read(ctx, of, id)
	return a, Revision(r.Sequence), err
}

// Known is [Ledger.Get] from this process's view. It needs no read if the view has the approval.
func (l *Ledger) Known(ctx context.Context, of schema.Tenants, id schema.ApprovalID) (*Approval, error) {
	a, _, _, err := l.known(ctx, of, id)
	return a, err
}

// ByCall is [Ledger.Get] by call id.
func (l *Ledger) ByCall(ctx context.Context, of schema.Tenants, callID schema.CallID) (*Approval, Revision, error) {
	return l.Get(ctx, of, IDFor(callID))
}

func (l *Ledger) read(ctx context.Context, of schema.Tenants, id schema.ApprovalID) (*Approval, Stored, error) {
	sought := id
	if a, _, ok := l.view.get(id); ok && !of.Include(a.Binding.Tenant) {
		sought += "0" // no approval has this id, so the answer takes as long as for one that does not exist
	}
	r, err := l.store.get(ctx, sought, bus.Either)
	if err != nil {
		return nil, r, readError(err, id)
	}
	a, err := l.store.decode(ctx, r.Head)
	if err == nil && (a.Forgotten || !of.Include(a.Binding.Tenant)) {
		return nil, Stored{}, NoApproval(id)
	}
	return a, r, err
}

// known returns the approval of these tenants and its revision, from the view if it is there (hint), else
// from the leader. Looking up an approval of another tenant takes as long as looking up one that does
// not exist.
func (l *Ledger) known(ctx context.Context, of schema.Tenants, id schema.ApprovalID) (a *Approval, revision uint64, hint bool, err error) {
	if a, revision, hint = l.view.get(id); hint && of.Include(a.Binding.Tenant) {
		return a, revision, true, nil
	}
	a, revision, err = l.reads.fresh(ctx, of, id)
	return a, revision, false, err
}

func readError(err error, id schema.ApprovalID) error {
	if errors.Is(err, bus.ErrNotFound) {
		return NoApproval(id)
	}
	return unavailable(err, "")
}

// NoApproval returns the error for an approval that does not exist, or belongs to another tenant.
func NoApproval(id schema.ApprovalID) error {
	return schema.Errorf(schema.KindNotFound, "There is no approval %s, or it has been deleted.", id)
}

func decode(head []byte) (*Approval, error) {
	a := new(Approval)
	if err := json.Unmarshal(head, a); err != nil {
		return nil, fmt.Errorf("decoding the approval: %w", err)
	}
	if !a.State.known() {
		return nil, fmt.Errorf("this version does not know the state of the approval")
	}
	return a, nil
}

// Check runs f on a copy of the approval of the tenant and returns its error, without storing the change.
// An error of f refers to the current record. Check returns the approval that f last received.
func (l *Ledger) Check(ctx context.Context, tenant schema.TenantID, id schema.ApprovalID, f func(*Approval) error) (*Approval, error) {
	of := schema.OnlyTenant(tenant)
	now, _, hint, err := l.known(ctx, of, id)
	if hint {
		seen := now.Clone()
		if f(seen.Clone()) == nil {
			return seen, nil
		}
		now, _, err = l.reads.fresh(ctx, of, id)
	}
	if err != nil {
		return nil, err
	}
	return now, f(now.Clone())
}

// Change reads an approval of the tenant, calls f to change it, and stores it. If another process wrote it
// in the meantime, Change starts over, a bounded number of times. So f may be called several times and
// must only modify its argument. An error of f is returned unchanged, once f has seen the current
// record.
//
// After an error of [schema.KindUnavailable], the change may have happened or may still happen, so the
// caller must not run the call.
func (l *Ledger) Change(ctx context.Context, tenant schema.TenantID, id schema.ApprovalID, f func(*Approval) error) (*Approval, error) {
	return l.change(ctx, schema.OnlyTenant(tenant), id, nil, f)
}

// End is [Ledger.Change] for the end of a call, with the bytes of its result. Small results are stored in
// the same write. It sets ResultDigest. A nil result means none.
func (l *Ledger) End(ctx context.Context, tenant schema.TenantID, id schema.ApprovalID, result []byte, f func(*Approval) error) (*Approval, error) {
	of := schema.OnlyTenant(tenant)
	if result == nil {
		return l.change(ctx, of, id, nil, f)
	}
	var sum string
	var extra []byte
	if len(result) == 0 || len(result) > min(inlineResult, l.store.maxBody()/2) {
		var err error
		if sum, err = l.put(ctx, tenant, inLedger, id, kindResult, result); err != nil {
			return nil, err
		}
	} else {
		var err error
		if extra, err = l.store.sealBytes(ctx, tenant, id, kindResult, 0, result); err != nil {
			return nil, err
		}
		sum = schema.Digest(result)
	}
	return l.change(ctx, of, id, extra, func(a *Approval) error {
		if err := f(a); err != nil {
			return err
		}
		a.ResultDigest = sum
		return nil
	})
}

func (l *Ledger) change(ctx context.Context, of schema.Tenants, id schema.ApprovalID, extra []byte, f func(*Approval) error) (*Approval, error) {
	f = l.guard(f)
	// Use the view to save a read: if it is stale, the write fails. The tenant of a record never
	// changes, so it need not be checked again below.
	now, revision, hint, err := l.known(ctx, of, id)
	if err != nil {
		return nil, err
	}
	var mine []string
	for range maxTries {
		next, err := l.try(ctx, id, extra, f, now, revision, hint)
		if err == nil {
			return next.Clone(), nil
		}
		if next != nil {
			mine = append(mine, next.Write)
		}
		switch {
		case errors.Is(err, bus.ErrRefused), errors.Is(err, bus.ErrNotConnected):
			return nil, unavailable(err, now.CallID)
		case next == nil && !hint:
			return nil, err // from f, or for a change that is not allowed
		case next == nil:
			hint = false // f may have refused a stale record
			if now, revision, err = l.reads.fresh(ctx, of, id); err != nil {
				return nil, err
			}
			continue
		}
		hint = false
		found, r, again := l.reads.landed(ctx, id, mine)
		if found != nil {
			l.view.put(found, r.Revision, r.Sequence)
			if found.State.Ended() {
				l.forget.ended(found)
			}
			return found.Clone(), nil
		}
		if !errors.Is(err, bus.ErrConflict) || again != nil {
			return nil, doubtful(errors.Join(err, again), now.CallID)
		}
		if now, err = l.store.decode(ctx, r.Head); err != nil {
			return nil, err
		}
		if now.Forgotten {
			return nil, NoApproval(id)
		}
		revision = r.Revision
	}
	e := schema.Errorf(schema.KindConflict, "Too many concurrent changes of approval %s; try again.", id).RetryableAfter(0)
	return nil, e.WithCall(now.CallID)
}

// try calls f to change the record and stores it. next is nil if no write was sent. Once it is this
// writer's turn, try uses the record in the view if it is newer.
func (l *Ledger) try(ctx context.Context, id schema.ApprovalID, extra []byte, f func(*Approval) error, now *Approval, revision uint64, hint bool) (next *Approval, err error) {
	defer l.turns.take(ctx, id)()
	if latest, at, ok := l.view.get(id); ok && (hint || at > revision) {
		now, revision = latest, at
	}
	if now.ResultDigest != "" && extra == nil {
		// The result may be stored with the record that is replaced, so it must be written again.
		r, err := l.reads.read(ctx, id)
		if err != nil {
			return nil, readError(err, id)
		}
		if now, err = l.store.decode(ctx, r.Head); err != nil {
			return nil, err
		}
		if now.Forgotten {
			return nil, NoApproval(id)
		}
		if revision = r.Revision; revision != 0 {
			extra = r.Body
		}
	}
	next = now.Clone()
	if err = f(next); err == nil {
		err = allowed(now, next)
	}
	if err != nil {
		return nil, err
	}
	next.Write = rand.Text()
	head, err := l.store.encode(ctx, next)
	if err != nil {
		return nil, err
	}
	written, err := l.store.replace(ctx, id, head, extra, revision)
	if err == nil {
		l.view.put(next, written, written)
		if next.State.Ended() {
			l.forget.ended(next)
		}
	}
	return next, err
}

// Current returns an approval of these tenants, including every acknowledged change.
func (l *Ledger) Current(ctx context.Context, of schema.Tenants, id schema.ApprovalID) (*Approval, error) {
	a, _, err := l.reads.fresh(ctx, of, id)
	return a, err
}

func (r *sharedReads) fresh(ctx context.Context, of schema.Tenants, id schema.ApprovalID) (*Approval, uint64, error) {
	found, err := r.read(ctx, id)
	if err != nil {
		return nil, 0, readError(err, id)
	}
	a, err := r.store.decode(ctx, found.Head)
	if err == nil && (a.Forgotten || !of.Include(a.Binding.Tenant)) {
		return nil, 0, NoApproval(id)
	}
	return a, found.Revision, err
}

// landed reads the record and returns it decoded if one of the marked writes created it. It may outlive
// ctx by a moment, because a caller that gave up must still learn that its write was stored.
func (r *sharedReads) landed(ctx context.Context, id schema.ApprovalID, marks []string) (*Approval, Stored, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settle)
	defer cancel()
	found, err := r.read(ctx, id)
	if err != nil {
		return nil, found, err
	}
	a, err := r.store.decode(ctx, found.Head)
	if err != nil {
		return nil, found, err
	}
	if slices.Contains(marks, a.Write) {
		return a, found, nil
	}
	return nil, found, nil
}

// unavailable returns the error for a read or write that failed.
func unavailable(err error, callID schema.CallID) error {
	return notReached(err, callID, nothingWritten(err))
}

// doubtful returns the error for a write that failed and may be stored anyway.
func doubtful(err error, callID schema.CallID) error { return notReached(err, callID, false) }

func notReached(err error, callID schema.CallID, retryable bool) error {
	e := schema.Errorf(schema.KindUnavailable, "The approval ledger cannot be reached or written; check that NATS is running and has disk space. (%w)", err)
	e.RetryAfter = 5 * time.Second
	e.Retryable = retryable
	return e.WithCall(callID)
}

// nothingWritten reports whether an error says that no write was sent.
func nothingWritten(err error) bool {
	return errors.Is(err, bus.ErrNotStoring) || errors.Is(err, bus.ErrNotConnected)
}
