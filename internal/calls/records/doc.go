// Package records stores the call records: the outcome of each call, durable or not, written off the
// call's path.
//
// A front door has one [Recorder]. A call that runs there is begun and ended; a call that a ledger
// or a journal tracks is added in one step. Both only append a pointer to a list. Every 100 ms, or
// as soon as there is enough for a message, a goroutine packs the queued records into few
// messages, so that one disk write serves many calls. A call that still runs after 2 s is also
// written as running, so that a process that dies leaves a trace of it.
//
// Recording never makes a call wait. Memory is bounded whatever NATS does; records that are
// dropped to keep it bounded are counted and logged. [Recorder.Get] and [Recorder.List] return the
// records that every front door has stored, and everything that was recorded here before.
//
// A record is not guaranteed to exist: a process that is killed loses the records that it had not
// stored yet, and new records replace the oldest ones. Nothing is decided by these records. The
// state of durable calls is stored elsewhere.
//
// A [Record] cannot hold arguments or results, only their digests and sizes.
//
// It is one package because the codec, the slots and the list rely on one order of keys.
//
// # Where a record is
//
// A call's id starts with its creation time in milliseconds. Records are stored by that time in
// slots of 10 s, one subject per slot, so a call is found by its id without an index. One call may
// have several records, from several front doors; readers merge them, see [Record.Newer].
package records
