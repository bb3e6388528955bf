// Package batch runs durable calls: the calls of batches, and single calls that must outlive
// their caller.
//
// It moves a call through its journal (internal/store/journal): it accepts the call, checks it,
// writes the intent before the call is sent, sends it, stores the result, and retries it if that
// is safe. A batch is one journal. The single durable calls of a front door share a journal of
// that front door, its lane.
//
// It guarantees that every accepted call reaches a final state, even if processes are killed. When
// the owner of a journal dies, another front door claims it, asks the workers for the outcomes of
// the calls in flight, and runs only calls that were never sent or that are safe to repeat. A call
// that was sent, whose outcome cannot be determined and that is not safe to repeat ends as
// unknown, and is shown to people. A batch does not delay other callers: its calls in flight are
// limited by a window, and they wait behind calls with a waiting caller.
//
// It knows nothing about HTTP, and leaves decisions about risk to the gate.
//
// Single durable calls run through the same layers as all others (see [execution.Chain.Run]). The
// plain calls of a batch differ in one step: they are sent with [execution.Chain.Start] and share
// two goroutines instead of using one each, so that many intents, requests and results are
// written at once (pipeline.go). The checks, the quota, the records and the metrics are the same.
// Without that step a batch of 10,000 calls runs at half the speed: 7,400 calls a second instead
// of 15,400 (medians of three rounds in turns, two cores).
//
// It is one package because a call changes hands only here: what accepts it, runs it,
// recovers it and answers for it has to agree on what each record of its journal means.
package batch
