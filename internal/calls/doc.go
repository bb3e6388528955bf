// Package calls is the life of a call: the one entry for every endpoint.
//
// An endpoint (REST, MCP, tool calls of models, the console) hands a call to [Calls.Submit]
// and learns that it has a result, is held for an approval, or was accepted and continues
// by itself. Later it asks for the call by id: [Calls.Get], [Calls.Wait], [Calls.Confirm],
// [Calls.Cancel], [Calls.Settle], [Calls.Answer], [Calls.List].
//
// It promises that a call is admitted once, whichever way it takes; that one
// [Status] describes every call; and that a call is shown to the principal that asked
// for it and to nobody else. It alone knows where a call is stored: plain calls live in
// memory and leave an execution record, held calls are in the ledger of approvals,
// durable calls in journals. An id tells which, and endpoints do not read ids.
//
// It refuses to render: what a status looks like is for the endpoint to say.
package calls
