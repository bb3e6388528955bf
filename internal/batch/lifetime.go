package batch

import (
	"context"
	"errors"
)

// Reasons for stopping a job.
var (
	errStopped  = errors.New("the front door is shutting down")
	errLost     = errors.New("another front door has the journal")
	errCanceled = errors.New("the batch was canceled")
	errExpired  = errors.New("the batch expired")
)

// lifetime limits the work that a job may do. Its three contexts end one after the other:
//   - stopping ends when nothing new may start, for any reason;
//   - leaving ends when the front door stops or has lost the journal, so that the next owner
//     settles the calls that an earlier owner left open;
//   - gone ends when running calls are abandoned too.
type lifetime struct {
	stopping context.Context
	stop     context.CancelCauseFunc
	leaving  context.Context
	giveBack context.CancelFunc
	gone     context.Context
	giveUp   context.CancelFunc
}

func newLifetime() *lifetime {
	t := &lifetime{}
	t.stopping, t.stop = context.WithCancelCause(context.Background())
	t.gone, t.giveUp = context.WithCancel(context.Background())
	t.leaving, t.giveBack = context.WithCancel(t.gone)
	return t
}

// halt lets nothing new start. Calls that were sent may finish. Only the first cause counts.
func (t *lifetime) halt(cause error) {
	t.stop(cause)
	if errors.Is(cause, errStopped) || errors.Is(cause, errLost) {
		t.giveBack()
	}
}

// cause returns the reason for stopping, or nil while the job runs. For a released journal it is
// errStopped even if the batch was canceled before, because some of its calls may not be settled.
func (t *lifetime) cause() error {
	cause := context.Cause(t.stopping)
	if t.leaving.Err() != nil && !errors.Is(cause, errLost) {
		return errStopped
	}
	return cause
}
