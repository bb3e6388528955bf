// Package dispatch is the router: it selects the worker for a call, sends the call there and waits
// for its end.
//
// It owns the slots. Every worker announces the number of concurrent calls that it accepts for
// each server. The live routers divide these slots evenly, and a call that finds no free slot
// waits here, not at a worker. The worker with the least work, weighted by its observed speed, is
// selected first, so one slow worker does not slow down the calls of the others.
//
// Waiting calls take turns by principal, in proportion to the weights of the principals, so that
// no principal waits for the whole backlog of another. Calls with a waiting caller are sent before
// bulk calls. Bulk calls leave some slots of each worker free for them, are limited where the two
// meet, and never starve.
//
// It guarantees that a call is sent again only if it is certain that it never started (no worker
// listened, the worker was full, the server could not be reached), or if it is marked as safe to
// repeat. Every other call without an answer ends as outcome-unknown. If the wait would be too
// long, the call is refused early, with the time after which to retry. The router pauses between
// attempts only if the operator configured a rule for that ([schema.Retry]), within the time of
// the call; all other attempts with a pause between them are the job of the component that keeps
// the call.
//
// It is one package because the queues, the slots and the states of a call on its way
// change together under one lock for each server.
package dispatch
