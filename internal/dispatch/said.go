package dispatch

import (
	"github.com/callyard/callyard/internal/kit/mcpwire"
	"github.com/callyard/callyard/pkg/bus"
)

// said hands on what the MCP server says by itself. The answer goes to the worker
// that asked, which may be one that was not named.
func (a *attempt) said(f *bus.ReplyFrame) {
	if a.call.Hear == nil {
		return
	}
	if f.Offset == 0 {
		a.call.Hear(f.Payload, nil)
		return
	}
	worker, seq, number := f.Worker, f.Seq, f.Offset
	a.call.Hear(f.Payload, func(object []byte) {
		if a.client.AnswerAsked(worker, seq, number, object) != nil {
			tooLong := append(mcpwire.AppendError([]byte{'{'}, mcpwire.CodeInternal, "The client's answer is too large to be forwarded."), '}')
			_ = a.client.AnswerAsked(worker, seq, number, tooLong) // it always fits
		}
	})
}
