package batch

import (
	"context"
	"errors"
)

// Why a job stops.
var (
	errStopped  = errors.New("the front door is shutting down")
	errLost     = errors.New("another front door has the journal")
	errCanceled = errors.New("the batch was canceled")
	errExpired  = errors.New("the batch expired")
)

// lifetime says what a job may still do. Its three contexts end one after the other:
// stopping when nothing new may start, whatever the cause; leaving when what an earlier
// owner left open is the next owner's, that is when the front door stops or has lost the
// journal; gone when what runs is given up too.
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

// halt lets nothing new start; what has left may finish. The first cause counts.
func (t *lifetime) halt(cause error) {
	t.stop(cause)
	if errors.Is(cause, errStopped) || errors.Is(cause, errLost) {
		t.giveBack()
	}
}

// cause is why the job stops, nil while it does not. A journal that is given back was
// stopped, also where it was canceled before: not all of its calls may be settled.
func (t *lifetime) cause() error {
	cause := context.Cause(t.stopping)
	if t.leaving.Err() != nil && !errors.Is(cause, errLost) {
		return errStopped
	}
	return cause
}
