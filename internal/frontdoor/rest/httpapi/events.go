package httpapi

import (
	"net/http"
	"time"

	"github.com/callyard/callyard/internal/kit/sse"
)

// DrainLook is how often a stream looks whether it has to end, because the front door drains or
// its credential is no longer valid.
const DrainLook = 500 * time.Millisecond

// NewEvents returns the writer of a stream of events as the answer.
func NewEvents(x *Exchange) *sse.Writer { return &sse.Writer{W: x, Within: TimeFor} }

// Why a [Live] tells.
type Why int

const (
	First   Why = iota // the stream begins
	Changed            // there was a change
	Looked             // some time has passed
)

// Live is a stream of events that continues until its reader leaves, its credential is no longer
// valid, the front door drains, or Tell says that there is no more to come.
type Live struct {
	Heartbeat time.Duration
	Draining  func() bool
	// Changes begins to watch what the stream tells.
	Changes func() (changes <-chan struct{}, stop func())
	// Tell writes what there is to be told. False ends the stream.
	Tell func(out *sse.Writer, why Why) (more bool, err error)
}

// Continues reports whether the credential of the request is still valid: it was not revoked, has
// not expired, and its access was not ended.
func (x *Exchange) Continues() bool {
	return x.shared.Callers == nil || x.shared.Callers.Continues(&x.Principal) == nil
}

// Follow answers with the stream. A HEAD request gets its header. Errors: those of
// [Exchange.Wait], and those of Tell.
func (l Live) Follow(x *Exchange, r *http.Request) error {
	out := NewEvents(x)
	defer out.End()
	if r.Method == http.MethodHead {
		out.Begin() // there is no body to wait for
		return nil
	}
	done, err := x.Wait()
	if err != nil {
		return err
	}
	defer done()
	changes, stop := l.Changes()
	defer stop()
	beat := time.NewTicker(l.Heartbeat)
	defer beat.Stop()
	look := time.NewTicker(DrainLook)
	defer look.Stop()
	more, err := l.Tell(out, First)
	for more && err == nil {
		select {
		case <-r.Context().Done():
			return nil
		case <-changes:
			more, err = l.Tell(out, Changed)
		case <-beat.C:
			err = out.Beat()
		case <-look.C:
			if l.Draining() {
				return nil
			}
			if !x.Continues() {
				return nil
			}
			more, err = l.Tell(out, Looked)
		}
	}
	return nil
}
