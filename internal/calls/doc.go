// Package calls is the single entry point for calls, used by every endpoint.
//
// An endpoint (REST, MCP, tool calls of models, the console) passes a call to [Calls.Submit],
// which returns a result, a held call that waits for an approval, or an accepted call that
// continues in the background. Later the endpoint refers to the call by id: [Calls.Get],
// [Calls.Wait], [Calls.Confirm], [Calls.Cancel], [Calls.Settle], [Calls.Answer], [Calls.List].
//
// The package guarantees that a call is admitted once on every path, that one [Status] describes
// every call, and that only the principal that requested a call can see it. It is the only
// package that knows where a call is stored: plain calls live in memory and leave an execution
// record, held calls are in the approval ledger, durable calls in journals. The id determines the
// location; endpoints do not parse ids.
//
// Rendering is left to the endpoints.
package calls
