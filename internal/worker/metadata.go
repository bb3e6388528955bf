package worker

import (
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

// maxMetadataBytes bounds the params of a call other than its arguments: _meta, the answers
// to input requests, and the request state ([bus.CallFrame.Extra]).
const maxMetadataBytes = 512 << 10

// metadataFault returns the reason to refuse a call because of its metadata, or nil. A
// warrant binds the arguments and nothing else, so an approved call must not have metadata:
// the approver has not seen it.
func metadataFault(f *bus.CallFrame, approved bool) *schema.Error {
	switch {
	case len(f.Extra) == 0:
		return nil
	case approved:
		return schema.Errorf(schema.KindForbidden, "An approved call runs with exactly the approved arguments; this one has metadata next to them and was not run. Send it without metadata.")
	case len(f.Extra) > maxMetadataBytes:
		return schema.Errorf(schema.KindTooLarge, "The call's metadata next to the arguments has %d bytes and exceeds the limit of %d bytes; send less.", len(f.Extra), maxMetadataBytes)
	}
	return nil
}
