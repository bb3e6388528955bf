package worker

import (
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

// extraMost bounds what a caller may send with the arguments.
const extraMost = 512 << 10

// extraFault says why what is sent with the arguments may not go along. An
// approval is for the arguments alone, so an approved call has nothing else.
func extraFault(f *bus.CallFrame, approved bool) *schema.Error {
	switch {
	case len(f.Extra) == 0:
		return nil
	case approved:
		return schema.Errorf(schema.KindForbidden, "A call that was approved runs with the arguments that were approved and nothing else; this one carries more.")
	case len(f.Extra) > extraMost:
		return schema.Errorf(schema.KindTooLarge, "What comes beside the arguments has %d bytes; at most %d go along.", len(f.Extra), extraMost)
	}
	return nil
}
