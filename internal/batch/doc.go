// Package batch runs durable calls: those of batches, and single ones that must
// outlive their caller.
//
// It owns the way of a call through its journal (internal/store/journal): accept it, judge
// it, write the intent before it leaves, send it, store the answer, retry it where that is
// safe. A batch is one journal; the single durable calls of a front door go into a journal
// of that front door's, its lane.
//
// It promises that an accepted call ends, whatever is killed: when the owner of a
// journal dies another front door takes it over, asks the workers about what was
// under way, and runs only what never left or is safe to repeat. A call that left,
// whose outcome nobody can tell and that is not safe to repeat becomes unknown, and
// people are shown it. It promises too that a batch holds up nobody: it has a
// window of calls, which wait behind those that somebody waits for.
//
// It refuses to know about HTTP, and decides nothing about risk: the gate does.
//
// Single durable calls run through the same layers as all others (see
// [execution.Chain.Run]). The plain calls of a batch differ in one step: they are sent
// with [execution.Chain.Start] and have two goroutines in common instead of one each, so
// that many intents, requests and results are written at once (pipeline.go). The checks,
// the quota, the records and the metrics are the same. Without that step a batch of
// 10,000 calls runs at half the speed: 7,400 calls a second instead of 15,400 (medians
// of three rounds in turns, two cores).
//
// It is one package because a call changes hands only here: what accepts it, runs it,
// recovers it and answers for it has to agree on what each record of its journal means.
package batch
