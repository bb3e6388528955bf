package httpapi

import (
	"net/http"
	"time"

	"github.com/callyard/callyard/internal/bodies"
	"github.com/callyard/callyard/internal/kit/sse"
)

// DrainLook is the interval at which a stream checks whether it must end, because the front door
// drains or its credential is no longer valid.
const DrainLook = 500 * time.Millisecond

// NewEvents returns a writer that sends an event stream as the answer.
func NewEvents(x *Exchange) *sse.Writer { return &sse.Writer{W: x, Within: bodies.TimeFor} }

// TellReason is the reason for a call of [EventStream].Tell.
type TellReason int

const (
	First   TellReason = iota // the stream begins
	Changed                   // there was a change
	Looked                    // DrainLook has passed
)

// EventStream is an event stream that continues until its reader disconnects, its credential is no longer
// valid, the front door drains, or Tell ends it.
type EventStream struct {
	Heartbeat time.Duration
	Draining  func() bool
	// Changes subscribes to the changes that the stream reports.
	Changes func() (changes <-chan struct{}, stop func())
	// Tell writes the pending events. If it returns false or an error, the stream ends.
	Tell func(out *sse.Writer, why TellReason) (more bool, err error)
}

// Continues returns nil if the request r of this exchange may continue; see [callers.Callers.Continues].
func (x *Exchange) Continues(r *http.Request) error {
	if x.shared.Callers == nil {
		return nil
	}
	return x.shared.Callers.Continues(r, &x.Principal)
}

// Follows reports whether the caller of the request r may continue to read a stream; see
// [callers.Callers.Follows].
func (x *Exchange) Follows(r *http.Request) bool {
	return x.shared.Callers == nil || x.shared.Callers.Follows(r, &x.Principal) == nil
}

// Follow answers with the stream. A HEAD request gets only its headers. It returns an error only
// before the stream begins. A later error cannot be reported to the reader, which connects again
// and then receives it as the answer; it is logged for debugging.
func (l EventStream) Follow(x *Exchange, r *http.Request) error {
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
			if !x.Follows(r) {
				return nil
			}
			more, err = l.Tell(out, Looked)
		}
	}
	if err != nil && out.Begun() {
		x.shared.Problems.log.Debug("an event stream ends early", "id", x.ID, "path", r.URL.Path, "error", err)
		return nil
	}
	return err
}
