package ledger

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
	"github.com/callyard/callyard/pkg/schema/digest"
)

// Options of a ledger. The zero value of each means its default.
type Options struct {
	// MaxAge is how long an approval is kept after its last change: 30 days. It
	// counts when the ledger is made.
	MaxAge time.Duration
	// MaxBytes bounds the ledger on disk; 0 sets no bound. A full one refuses.
	MaxBytes int64
	// MaxOpen is how many approvals may wait or run at once: 10,000. Above it
	// new ones are refused.
	MaxOpen int
	// MaxEnded is how many ended approvals are kept in memory for lists: 10,000.
	// Older ones are found by id only.
	MaxEnded int
	// Log receives what cannot be told to a caller. It must be set.
	Log *slog.Logger
}

const (
	defaultMaxAge   = 30 * 24 * time.Hour
	defaultMaxOpen  = 10_000
	defaultMaxEnded = 10_000

	// maxTries is how often a change is tried against other writers. Each round
	// one of them wins, so it is also how many may write one record at once.
	maxTries = 64
	// settle is how long a writer that lost the reply looks for its own write.
	settle = 2 * time.Second
)

// Revision names a version of a record: of two, the greater is the newer.
type Revision uint64

// Ledger is the durable state of approvals. All methods are safe for concurrent
// use.
type Ledger struct {
	store   *bus.Ledger
	view    *view
	watch   *bus.LedgerWatch
	maxOpen int
	log     *slog.Logger
}

// Open opens the ledger on a connection, makes it where there is none, and reads
// what is in it; ctx bounds that. The connection stays the caller's.
func Open(ctx context.Context, conn *bus.Conn, o Options) (*Ledger, error) {
	store, err := bus.OpenLedger(ctx, conn, bus.LedgerOptions{MaxAge: or(o.MaxAge, defaultMaxAge), MaxBytes: o.MaxBytes})
	if err != nil {
		return nil, err
	}
	l := &Ledger{store: store, view: newView(or(o.MaxEnded, defaultMaxEnded)), maxOpen: or(o.MaxOpen, defaultMaxOpen), log: o.Log}
	if l.watch, err = store.Watch(ctx, l.seen); err != nil {
		return nil, err
	}
	return l, nil
}

func or[T comparable](v, otherwise T) T {
	var zero T
	if v == zero {
		return otherwise
	}
	return v
}

// Close ends the watch and waits for it.
func (l *Ledger) Close() { l.watch.Close() }

// Create stores a new approval with its arguments, in one write where they fit
// into a message. It fills in ID, Binding.CallID, Binding.ApprovalID, the
// digests of arguments and definition, BindingDigest, State and Created where
// they are empty, and refuses what contradicts them. It returns a conflict when
// the call has an approval already.
func (l *Ledger) Create(ctx context.Context, a *Approval, args []byte) (Revision, error) {
	if err := l.complete(a, args); err != nil {
		return 0, err
	}
	if l.view.open() >= l.maxOpen {
		e := schema.Errorf(schema.KindUnavailable, "%d calls are waiting for approval, and no more are taken; try again when some were decided.", l.maxOpen)
		e.Retryable, e.RetryAfter = true, 30*time.Second
		return 0, e.WithCall(a.CallID)
	}
	a.Write = rand.Text()
	head, err := json.Marshal(a)
	if err != nil {
		return 0, fmt.Errorf("encoding the approval: %w", err)
	}
	body, err := l.opening(ctx, a, args, len(head))
	if err != nil {
		return 0, unavailable(err, a.CallID)
	}
	seq, err := l.store.Create(ctx, a.ID, head, body)
	if err != nil {
		mine, at, again := l.landed(ctx, a.ID, []string{a.Write})
		switch {
		case mine != nil:
			seq = at.Sequence
		case errors.Is(err, bus.ErrConflict):
			return 0, schema.Errorf(schema.KindConflict, "Call %s is held already, as approval %s.", a.CallID, a.ID).WithCall(a.CallID)
		default:
			return 0, unavailable(errors.Join(err, again), a.CallID)
		}
	}
	kept := a.Clone()
	kept.Definition = nil
	l.view.put(kept, 0, seq)
	return Revision(seq), nil
}

func (l *Ledger) complete(a *Approval, args []byte) error {
	a.ID, a.State = or(a.ID, IDFor(a.CallID)), or(a.State, Pending)
	b := &a.Binding
	b.CallID, b.ApprovalID = or(b.CallID, a.CallID), or(b.ApprovalID, a.ID)
	b.ArgumentsDigest = or(b.ArgumentsDigest, digest.Of(args))
	if len(a.Definition) > 0 {
		b.ToolDefinitionDigest = or(b.ToolDefinitionDigest, digest.Of(a.Definition))
	}
	a.BindingDigest = or(a.BindingDigest, b.Digest())
	if a.Created.IsZero() {
		a.Created = time.Now().UTC()
	}
	wrong := ""
	switch {
	case a.CallID == "":
		wrong = "names no call"
	case a.ID != IDFor(a.CallID), b.CallID != a.CallID, b.ApprovalID != a.ID:
		wrong = "is of another call"
	case a.State != Pending:
		wrong = "does not begin pending"
	case a.Expires.IsZero():
		wrong = "never expires"
	case b.ArgumentsDigest != digest.Of(args):
		wrong = "binds other arguments"
	case len(a.Definition) > 0 && b.ToolDefinitionDigest != digest.Of(a.Definition):
		wrong = "binds another tool definition"
	case a.BindingDigest != b.Digest():
		wrong = "has a digest of another binding"
	default:
		return nil
	}
	return schema.Errorf(schema.KindInternal, "The approval %s; it was not stored.", wrong).WithCall(a.CallID)
}

// Get reads an approval as it stands. It is a hint: [Ledger.Change] decides.
func (l *Ledger) Get(ctx context.Context, id string) (*Approval, Revision, error) {
	a, r, err := l.read(ctx, id, false)
	return a, Revision(r.Sequence), err
}

// ByCall reads the approval of a call.
func (l *Ledger) ByCall(ctx context.Context, callID string) (*Approval, Revision, error) {
	return l.Get(ctx, IDFor(callID))
}

func (l *Ledger) read(ctx context.Context, id string, fresh bool) (*Approval, bus.LedgerRecord, error) {
	r, err := l.store.Get(ctx, id, fresh)
	if err != nil {
		return nil, r, readError(err, id)
	}
	a, err := decode(r.Head)
	return a, r, err
}

func readError(err error, id string) error {
	if errors.Is(err, bus.ErrNotFound) {
		return schema.Errorf(schema.KindNotFound, "There is no approval %s, or it is too old to be kept.", id)
	}
	return unavailable(err, "")
}

func decode(head []byte) (*Approval, error) {
	a := new(Approval)
	if err := json.Unmarshal(head, a); err != nil {
		return nil, fmt.Errorf("decoding the approval: %w", err)
	}
	if !a.State.known() {
		return nil, fmt.Errorf("the approval is in a state that this version does not know")
	}
	return a, nil
}

// Change reads an approval, lets f change it and stores it when nobody was
// faster; else it starts over with what the other wrote, a bounded number of
// times. f may be called several times and must do nothing but change its
// argument. An error of f is returned as it is, once f has seen the record fresh.
//
// When the error has [schema.KindUnavailable], the change may have happened or
// may yet happen: whoever wanted to run the call must not.
func (l *Ledger) Change(ctx context.Context, id string, f func(*Approval) error) (*Approval, error) {
	// The view saves the read: when it is behind, the write does not succeed.
	now, revision, hint := l.view.get(id)
	var err error
	if !hint {
		if now, revision, err = l.fresh(ctx, id); err != nil {
			return nil, err
		}
	}
	var mine []string
	for range maxTries {
		next := now.Clone()
		if err = f(next); err == nil {
			err = allowed(now, next)
		}
		if err != nil {
			if !hint {
				return nil, err
			}
			hint = false // what was refused may be out of date
			if now, revision, err = l.fresh(ctx, id); err != nil {
				return nil, err
			}
			continue
		}
		next.Write = rand.Text()
		mine = append(mine, next.Write)
		head, err := json.Marshal(next)
		if err != nil {
			return nil, fmt.Errorf("encoding the approval: %w", err)
		}
		written, err := l.store.Replace(ctx, id, head, revision)
		if err == nil {
			l.view.put(next, written, written)
			return next.Clone(), nil
		}
		if errors.Is(err, bus.ErrRefused) {
			return nil, unavailable(err, now.CallID)
		}
		hint = false
		found, r, again := l.landed(ctx, id, mine)
		if found != nil {
			l.view.put(found, r.Revision, r.Sequence)
			return found.Clone(), nil
		}
		if !errors.Is(err, bus.ErrConflict) || again != nil {
			return nil, unavailable(errors.Join(err, again), now.CallID)
		}
		if now, err = decode(r.Head); err != nil {
			return nil, err
		}
		revision = r.Revision
	}
	e := schema.Errorf(schema.KindConflict, "Approval %s is being changed by many at once; try again.", id)
	e.Retryable = true
	return nil, e
}

func (l *Ledger) fresh(ctx context.Context, id string) (*Approval, uint64, error) {
	a, r, err := l.read(ctx, id, true)
	return a, r.Revision, err
}

// landed reads the record and returns it decoded when one of the marked writes
// made it. It outlives ctx for a moment: a caller that gave up must still be
// told when its write is there.
func (l *Ledger) landed(ctx context.Context, id string, marks []string) (*Approval, bus.LedgerRecord, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settle)
	defer cancel()
	r, err := l.store.Get(ctx, id, true)
	if err != nil {
		return nil, r, err
	}
	a, err := decode(r.Head)
	if err != nil {
		return nil, r, err
	}
	for _, mark := range marks {
		if a.Write == mark {
			return a, r, nil
		}
	}
	return nil, r, nil
}

func unavailable(err error, callID string) error {
	return schema.Errorf(schema.KindUnavailable, "The ledger of approvals cannot be reached or takes no writes; see that NATS runs and has space. (%w)", err).WithCall(callID)
}
