package frontdoor

import (
	"time"

	"github.com/callyard/callyard/internal/frontdoor/rest/admin"
	"github.com/callyard/callyard/pkg/schema"
)

// Lost is the data that an operator accepted as lost with a damaged data folder. The zero value
// means that nothing was lost.
type Lost struct {
	// Calls and Approvals are the times at which records of durable calls, and of approvals, were
	// accepted as lost. Older ones do not run.
	Calls, Approvals time.Time
	// Key reports whether the entry of an idempotency key was lost, by its hash. If nil, none was.
	Key func(hash string) bool
	// Files is the number of damaged files accepted as lost, Latest the time of the last
	// acceptance, and Streams the names of the affected streams.
	Files   int
	Latest  time.Time
	Streams []string
}

// lostApproval returns a function that reports whether the approval of a call may be lost. It
// returns nil if no approval was lost.
func (l *Lost) lostApproval() func(callID schema.CallID) bool {
	if l.Approvals.IsZero() {
		return nil
	}
	return func(callID schema.CallID) bool {
		made, ok := schema.IDTime(string(callID))
		return ok && made.Before(l.Approvals)
	}
}

// health returns the losses that /health shows.
func (l *Lost) health() *admin.HealthLosses {
	if l.Files == 0 {
		return nil
	}
	return &admin.HealthLosses{Files: l.Files, Latest: l.Latest, Streams: append([]string{}, l.Streams...)}
}
