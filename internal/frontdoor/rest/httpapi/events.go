package httpapi

import (
	"time"

	"github.com/callyard/callyard/internal/kit/sse"
)

// DrainLook is how often a stream looks whether the front door drains, and it has to end.
const DrainLook = 500 * time.Millisecond

// NewEvents returns the writer of a stream of events as the answer.
func NewEvents(x *Exchange) *sse.Writer { return &sse.Writer{W: x, Within: TimeFor} }
