package ledger

import "github.com/callyard/callyard/pkg/schema"

// guard wraps f to refuse changes to approved or running if records may have been lost: the remaining
// record may be from before the call ran.
func (l *Ledger) guard(f func(*Approval) error) func(*Approval) error {
	if l.lost.IsZero() {
		return f
	}
	return func(a *Approval) error {
		was := a.State
		if err := f(a); err != nil {
			return err
		}
		if a.State != was && (a.State == Approved || a.State == Running) && a.Created.Before(l.lost) {
			return schema.Errorf(schema.KindOutcomeUnknown, "Approval records were lost with a damaged data folder, so it is unknown whether this call has run; it can no longer be approved. Check its effects, and send it again if needed.").WithCall(a.CallID)
		}
		return nil
	}
}
