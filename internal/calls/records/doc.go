// Package records is the execution log: what became of each call, durable or not,
// written next to the call's path and never on it.
//
// A front door has one [Recorder]. A call that runs is begun and ended there, or
// told in one piece where somebody else keeps it (a ledger, a journal); both put
// a pointer into a list and return. A goroutine packs what has gathered, every
// 100 ms or as soon as there is enough for a message, into few messages, so that
// one write to the disk serves many calls. A call that still runs after 2 s is
// written as running as well, so that a process that dies leaves a trace of it.
//
// It promises that telling costs a call no wait, that memory is bounded whatever
// NATS does, and that what was dropped for that is counted and said in the log.
// [Recorder.Get] and [Recorder.List] show what every front door wrote, and all
// that this one was told before.
//
// It does not promise that a record is there: a process that is killed loses the records
// that it had not written yet, and new records replace the oldest ones. Nothing is decided
// by these records. The state of durable calls is kept elsewhere.
//
// It refuses arguments and results: a [Record] has no place for them, only for
// their digests and sizes.
//
// It is one package because the codec, the slots and the list rely on one order of keys.
//
// # Where a record is
//
// A call's id begins with the milliseconds at which it was made. Records are
// stored by that time in slots of 10 s, one subject for each, so a call is found
// by its id without an index. One call may have several records, from several
// front doors; readers put them together, see [Record.Newer].
package records
