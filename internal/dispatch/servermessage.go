package dispatch

import (
	"slices"

	"github.com/callyard/callyard/internal/kit/mcpwire"
	"github.com/callyard/callyard/pkg/bus"
)

// serverMessage forwards a notification or request of the MCP server during the call. The answer
// goes to the worker that sent the message, because the call may have been sent without naming a
// worker.
func (a *attempt) serverMessage(f *bus.ReplyFrame) {
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
			_ = a.client.AnswerAsked(worker, seq, number, tooLong) // this short error always fits
		}
	})
}

// mostAsked limits the credential requests of one attempt. A worker requests a credential again
// if the server refused the first one.
const mostAsked = 2

// credential answers a worker's request for the credential of the person behind the call. The
// router knows the principal of the call and does not rely on the worker for it.
func (a *attempt) credential(f *bus.ReplyFrame) {
	if a.asked.Add(1) > mostAsked {
		return
	}
	worker, seq, message := f.Worker, f.Seq, slices.Clone(f.Payload)
	call, server, who := a.call.ID, a.call.Server, a.call.Principal
	r := a.router
	r.wait.Go(func() {
		_ = a.client.AnswerAsked(worker, seq, bus.CredentialNumber, r.limits.Credentials.Answer(r.life, call, server, &who, message)) // a credential is small
	})
}
