package dispatch

import "github.com/callyard/callyard/pkg/schema"

// Guard returns the reason why a call must not be sent now, or nil. The router calls it after a
// call got its slot, each time before the call is sent, because the conditions under which it was
// admitted may have changed while it waited. It is called without locks on many goroutines and
// must not block. The error is a *[schema.Error].
type Guard func(*schema.Call) error

// SetGuard sets the guard of all calls. Without a guard every call may be sent. Internal requests
// ([Router.Request]) skip the guard. It is safe for concurrent use.
func (r *Router) SetGuard(g Guard) { r.guard.Store(&g) }

// mayLeave calls the guard for a call that has a slot of the lane.
func (r *Router) mayLeave(call *schema.Call, l *lane) error {
	if g := r.guard.Load(); g != nil && !l.internal {
		return (*g)(call)
	}
	return nil
}
