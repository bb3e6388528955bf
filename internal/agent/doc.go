// Package agent lets a language model use the tools of a running Callyard.
//
// It owns the loop: it sends the conversation to the model, runs the tool calls of the answer with
// one request to POST /tool-calls, and returns the results to the model, until the model answers
// without calls or a budget is exhausted. It owns the transcript, a file with one JSON object per
// line. An answer is on disk before its calls are sent, and their idempotency key consists of the
// session and the turn. A session that was killed and is resumed therefore sends the same request
// again, and no call runs twice.
//
// It never decides for a person: it shows a call that needs a confirmation with all of its
// arguments, and denies the call if no person is present. The model never receives a token that
// confirms a call.
package agent
