package ledger

import (
	"cmp"
	"time"

	"github.com/callyard/callyard/pkg/schema"
)

const (
	defaultMaxOpen      = 10_000
	defaultMaxOpenBytes = 512 << 20

	// heldAgain is the Retry-After if too many calls are held.
	heldAgain = 30 * time.Second
)

// usage counts the calls that are held or run after an approval, and the bytes of their arguments.
type usage struct {
	calls int
	bytes int64
}

func (u usage) plus(a *Approval, sign int) usage {
	return usage{u.calls + sign, u.bytes + int64(sign)*a.ArgumentsSize}
}

func (u usage) within(most usage) bool { return u.calls <= most.calls && u.bytes <= most.bytes }

// limits holds the limits of all principals together and of each one. Each may use a quarter of the total,
// so that one caller cannot lock out the others.
type limits struct{ all, each usage }

func newLimits(o Options) limits {
	all := usage{cmp.Or(o.MaxOpen, defaultMaxOpen), cmp.Or(o.MaxOpenBytes, int64(defaultMaxOpenBytes))}
	return limits{all, usage{min(all.calls, max(all.calls/4, 16)), all.bytes / 4}}
}

// Held returns the number of calls that are held or run after an approval, over all principals, and the
// bytes of their arguments, as counted for the limits. It is safe for concurrent use.
func (l *Ledger) Held() (calls int, bytes int64) {
	l.view.mu.RLock()
	defer l.view.mu.RUnlock()
	return l.view.open.calls, l.view.open.bytes
}

// countLocked adds sign times the approval to the usage. The caller must hold v.mu.
func (v *view) countLocked(a *Approval, sign int) {
	v.open = v.open.plus(a, sign)
	who := a.Binding.requester()
	if u := v.openOf[who].plus(a, sign); u.calls == 0 {
		delete(v.openOf, who)
	} else {
		v.openOf[who] = u
	}
}

// reserve counts an approval that is about to be stored. It is counted once: first as reserved, then as
// open when the watch delivers it. release cancels an unused reservation, and does nothing otherwise.
func (v *view) reserve(a *Approval, most limits) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.countedLocked(a.ID) {
		return nil // the store refuses it
	}
	if err := v.checkLocked(a, most); err != nil {
		return err
	}
	v.reserved[a.ID] = a
	v.countLocked(a, 1)
	return nil
}

// MayHold returns the error with which [Ledger.Create] would refuse an approval now because of a limit, or nil.
func MayHold(l *Ledger, a *Approval) error {
	l.view.mu.RLock()
	defer l.view.mu.RUnlock()
	if l.view.countedLocked(a.ID) {
		return nil // it is a conflict
	}
	return l.view.checkLocked(a, l.limits)
}

// countedLocked reports whether the approval exists or is being stored. The caller must hold v.mu.
func (v *view) countedLocked(id schema.ApprovalID) bool {
	_, known := v.rows[id]
	return known || v.reserved[id] != nil
}

// checkLocked returns an error if one more approval would exceed a limit. The caller must hold v.mu.
func (v *view) checkLocked(a *Approval, most limits) error {
	own := v.openOf[a.Binding.requester()].plus(a, 1)
	var e *schema.Error
	switch {
	case !v.open.plus(a, 1).within(most.all):
		e = schema.Errorf(schema.KindUnavailable, "%d calls with %d bytes of arguments are held, and the fleet's limits are %d calls and %d bytes; this call was not accepted. Try again when some have been decided.",
			v.open.calls, v.open.bytes, most.all.calls, most.all.bytes)
	case !own.within(most.each):
		e = schema.Errorf(schema.KindQuota, "You have %d held calls with %d bytes of arguments, and your limits are %d calls and %d bytes; this call was not accepted. Confirm or cancel some, or wait until they are decided.",
			own.calls-1, own.bytes-a.ArgumentsSize, most.each.calls, most.each.bytes)
	default:
		return nil
	}
	e.Retryable, e.RetryAfter = true, heldAgain
	return e.WithCall(a.CallID)
}

func (v *view) release(id schema.ApprovalID) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.releaseLocked(id)
}

func (v *view) releaseLocked(id schema.ApprovalID) {
	if a := v.reserved[id]; a != nil {
		delete(v.reserved, id)
		v.countLocked(a, -1)
	}
}
