// Package dispatch is the router: it decides which worker takes a call, sends
// it there and waits for its end.
//
// It owns the slots. Every worker says how many calls it takes at once for each
// server; the live routers share them out evenly, and a call that finds none
// free waits here, not at a worker. The worker with the least work, weighted by
// its observed speed, goes first, so one slow worker does not slow the others'
// calls.
//
// Calls that wait take turns by principal, in proportion to the weights of the
// principals, so that nobody waits for the whole backlog of another. Calls that
// somebody waits for go before bulk calls, which leave some slots of each worker
// free for them, hold back where the two meet, and never starve.
//
// It promises that a call is sent again only when it is proven that it never started
// (nobody listened, the worker was full, the server could not be reached), or when it is
// marked as safe to repeat. Everything else that ends without an answer is reported as
// outcome-unknown. It refuses early, with the time after which to retry, when the wait
// would be too long. It pauses between attempts only where the operator wrote a rule for
// that ([schema.Retry]), within the time of the call; all other attempts with a pause between
// them are the job of the component that keeps the call.
//
// It is one package because the queues, the slots and the states of a call on its way
// change together under one lock for each server.
package dispatch
