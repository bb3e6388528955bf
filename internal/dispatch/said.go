package dispatch

import (
	"slices"

	"github.com/callyard/callyard/internal/kit/mcpwire"
	"github.com/callyard/callyard/pkg/bus"
)

// said hands on what the MCP server says by itself. The answer goes to the worker
// that asked, which may be one that was not named.
func (a *attempt) said(f *bus.ReplyFrame) {
	if f.Offset == bus.CredentialNumber {
		a.credential(f)
		return
	}
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

// mostAsked is how often a worker may ask during one attempt: again where the server refused the
// first credential.
const mostAsked = 2

// credential answers a worker that asks for the credential of the person behind the call. Who
// that is the router knows, whatever the worker says.
func (a *attempt) credential(f *bus.ReplyFrame) {
	if a.asked.Add(1) > mostAsked {
		return
	}
	worker, seq, message := f.Worker, f.Seq, slices.Clone(f.Payload)
	call, server, who := a.call.ID, a.call.Server, a.call.Principal
	r := a.router
	r.wait.Go(func() {
		_ = a.client.AnswerAsked(worker, seq, bus.CredentialNumber, r.limits.Credentials.Answer(r.life, call, server, &who, message)) // it is small
	})
}
