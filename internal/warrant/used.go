package warrant

import (
	"sync"
	"time"

	"github.com/callyard/callyard/pkg/schema"
)

// UsedWarrants remembers the warrants that were used in this process until they expire. It is safe for
// concurrent use.
//
// It is the second fence. The first is the ledger, which gives an approved call to one runner
// once. UsedWarrants keeps a message that is sent again, by any sender, from running again here.
type UsedWarrants struct {
	most int

	mu        sync.Mutex
	calls     map[schema.CallID]use          // by call id
	approvals map[schema.ApprovalID]struct{} // the approvals of these calls
	forgotten int64                          // the latest deadline of a forgotten warrant
	swept     time.Time                      // time of the last sweep
}

type use struct {
	approval schema.ApprovalID
	deadline int64
}

// NewUsedWarrants returns UsedWarrants that hold at most that number of warrants.
func NewUsedWarrants(most int) *UsedWarrants {
	return &UsedWarrants{most: most, calls: make(map[schema.CallID]use), approvals: make(map[schema.ApprovalID]struct{})}
}

// Expired warrants are swept periodically, and sooner if the memory is full.
const (
	sweepEvery    = time.Minute
	sweepWhenFull = time.Second
)

// Take marks the warrant as used. c comes from [Trust.Admit] with the same now. Errors:
// KindConflict if this call or this approval was already used here; KindForbidden if its
// deadline is too old to tell; KindUnavailable if the memory is full.
func (s *UsedWarrants) Take(c *Claims, now time.Time) *schema.Error {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, call := s.calls[c.CallID]
	_, approval := s.approvals[c.ApprovalID]
	if call || approval {
		return schema.Errorf(schema.KindConflict, "An approved call runs once, and this one has already been started here; it was not run again. GET /calls/%s returns its outcome.", c.CallID)
	}
	full := len(s.calls) >= s.most
	if since := now.Sub(s.swept); since < 0 || since >= sweepEvery || full && since >= sweepWhenFull {
		s.sweep(now)
		full = len(s.calls) >= s.most
	}
	switch {
	case c.Deadline <= s.forgotten:
		// A clock that was set back must not readmit a forgotten warrant.
		return refuse("its warrant has expired: the deadline has passed")
	case full:
		return schema.Errorf(schema.KindUnavailable, "Too many approved calls have started here within the validity of their warrants; this one did not start.").RetryableAfter(sweepWhenFull)
	}
	s.calls[c.CallID] = use{c.ApprovalID, c.Deadline}
	s.approvals[c.ApprovalID] = struct{}{}
	return nil
}

// Return undoes [UsedWarrants.Take] for a call that provably did not reach its server, so that it can
// be sent here again.
func (s *UsedWarrants) Return(c *Claims) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.calls, c.CallID)
	delete(s.approvals, c.ApprovalID)
}

// sweep forgets warrants that no worker would admit any longer.
func (s *UsedWarrants) sweep(now time.Time) {
	s.swept = now
	over := now.Add(-Leeway).UnixMilli()
	for id, u := range s.calls {
		if over > u.deadline {
			s.forgotten = max(s.forgotten, u.deadline)
			delete(s.calls, id)
			delete(s.approvals, u.approval)
		}
	}
}
