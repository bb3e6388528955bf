// Package agent lets a language model use the tools of a running Callyard.
//
// It owns the loop: the model is asked, its tool calls run with one request to
// POST /tool-calls, the results go back to the model, until it answers without calls or a
// budget is spent. It owns the transcript, a file with one JSON object a line. An answer of
// the model is on disk before its calls are sent, and their idempotency key is made of the
// session and the turn: a session that was killed and is resumed sends the same request
// again, and no call runs twice.
//
// It refuses to decide for a person: a call that needs a confirmation is shown with all of
// its arguments, and is denied when nobody is there. The model never sees a token that
// confirms a call.
package agent
