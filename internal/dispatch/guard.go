package dispatch

import "github.com/callyard/callyard/pkg/schema"

// Guard says why a call must not leave now, or nil. The router asks it in the moment
// in which a call has its slot and is about to be sent, each time that it is sent: what
// was true when the call was admitted may have changed while it waited. It is called
// without locks on many goroutines and must not block. The error is a *[schema.Error].
type Guard func(*schema.Call) error

// SetGuard sets the guard of all calls. Without one every call may leave. The fabric's
// own requests ([Router.Request]) do not pass it. It is safe for concurrent use.
func (r *Router) SetGuard(g Guard) { r.guard.Store(&g) }

// mayLeave asks the guard about a call that has a slot of the lane.
func (r *Router) mayLeave(call *schema.Call, l *lane) error {
	if g := r.guard.Load(); g != nil && !l.internal {
		return (*g)(call)
	}
	return nil
}
