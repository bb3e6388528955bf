package mcp

import (
	"context"
	"slices"

	"github.com/callyard/callyard/internal/kit/mcpwire"
	"github.com/callyard/callyard/internal/kit/rawjson"
	"github.com/callyard/callyard/internal/problem"
	"github.com/callyard/callyard/pkg/schema"
)

// maxRounds limits the rounds of questions from a server of the modern era to a client of the
// legacy era within one call.
const maxRounds = 10

// answered asks a client of the legacy era the questions of a server of the modern era, and
// returns the call that carries the answers.
func (r *requests) answered(ctx context.Context, x *exchange, call *schema.Call, question []byte, rounds int) (*schema.Call, *fault) {
	var requests, state []byte
	each(question, func(key string, value []byte) {
		switch key {
		case "inputRequests":
			requests = value
		case "requestState":
			state = value
		}
	})
	answers, e := r.askAll(ctx, x, call.ID, requests, rounds)
	if e != nil {
		return nil, e
	}
	again := *call
	again.ID, again.Progress, again.Fresh, again.NoStore = schema.NewCallID(), nil, true, true
	if call.Method == "" {
		again.Extra = x.extra(answers, state)
		return &again, nil
	}
	again.Arguments = withMembers(call.Arguments, answers, state)
	return &again, nil
}

// askAll asks a client of the legacy era all questions, and returns the answers as an object.
func (r *requests) askAll(ctx context.Context, x *exchange, callID schema.CallID, requests []byte, rounds int) ([]byte, *fault) {
	if x.session == nil || rounds >= maxRounds {
		return nil, x.faultOf(schema.Errorf(schema.KindInputRequired, "The tool asked for input %d times; the call was given up.", rounds).WithCall(callID))
	}
	answers := []byte{'{'}
	var failed *fault
	each(requests, func(id string, request []byte) {
		if failed != nil {
			return
		}
		method, params := serverMessage(request)
		if !mcpwire.AsksClient(method) {
			failed = &fault{Code: mcpwire.CodeInternal, Message: "The server sent a request that no client can answer: " + problem.Printable(method, maxPrinted)}
			return
		}
		if method == mcpwire.MethodElicit && getString(params, "mode") == "url" && get(params, "elicitationId") == nil {
			// Revision 2025-11-25 requires the id, which the modern era does not have.
			open := slices.Clone(params[:len(params)-1])
			params = append(appendMember(open, "elicitationId", quote(string(callID)+"."+id)), '}')
		}
		m, err := x.session.ask(ctx, x, method, params)
		switch {
		case err != nil:
			failed = x.faultOf(schema.AsError(err).WithCall(callID))
		case m.fault != nil:
			failed = &fault{Code: mcpwire.CodeInternal, Message: "The client rejected the server's request: " + problem.Printable(getString(m.fault, "message"), maxPrinted)}
		default:
			answers = appendMember(answers, id, m.result)
		}
	})
	if failed != nil {
		return nil, failed
	}
	return append(answers, '}'), nil
}

// withMembers returns params with the answers and state in place of any that it has.
func withMembers(params, answers, state []byte) []byte {
	out := rawjson.With(rawjson.Without(params, "requestState"), "inputResponses", answers)
	if state != nil {
		out = rawjson.With(out, "requestState", state)
	}
	return out
}
