// Package approval is the desk: it opens the question whether a held call may
// run, takes the answers, and closes it.
//
// It owns who may decide. It promises that the requester never decides where a
// person is asked for, under whatever key; that a person counts once; that one
// denial vetoes; that silence is a denial, also when the clock jumps; that exactly the
// bytes which were shown run, or exactly the edited ones; and that an approved call
// is given to one runner, once, whatever happens to tokens, Redis or the processes
// involved. A standing permission, which one who may decide alone gives for a time,
// answers for calls like the one it was given with and for nothing else.
//
// The fence under all of it is the ledger: every step is a compare-and-set on
// the approval's record. That record is the truth; the audit record is written
// after it, off the caller's path, and [Desk.Repair] puts back what a killed
// process could not write. Holding a call is one synced write, confirming it a
// second one; how it ended is written when the caller has its answer.
//
// It refuses to know about HTTP, pages or Slack: they all call [Desk.Decide]. It
// signs nothing itself: who does is given to it ([Options]).
package approval
