package frontdoor

import (
	"time"

	"github.com/callyard/callyard/internal/frontdoor/rest/admin"
	"github.com/callyard/callyard/pkg/schema"
)

// Lost is what an operator accepted as lost with a damaged data folder. The zero value
// is nothing.
type Lost struct {
	// Calls and Approvals are when records of durable calls, and of approvals, were
	// accepted as lost: what is older does not run.
	Calls, Approvals time.Time
	// Key says that the entry of an idempotency key was lost, by its hash; nil: none was.
	Key func(hash string) bool
	// Files is how many damaged files were accepted as lost, Latest when that was last
	// done, and Streams are the names of the streams that they belong to.
	Files   int
	Latest  time.Time
	Streams []string
}

// lostApproval says of a call whether its approval may be lost; nil where none is.
func (l *Lost) lostApproval() func(callID schema.CallID) bool {
	if l.Approvals.IsZero() {
		return nil
	}
	return func(callID schema.CallID) bool {
		made, ok := schema.IDTime(string(callID))
		return ok && made.Before(l.Approvals)
	}
}

// health is what /health shows of it.
func (l *Lost) health() *admin.HealthLosses {
	if l.Files == 0 {
		return nil
	}
	return &admin.HealthLosses{Files: l.Files, Latest: l.Latest, Streams: append([]string{}, l.Streams...)}
}
