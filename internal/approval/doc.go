// Package approval is the desk: it opens the question whether a held call may
// run, takes the answers, and closes it.
//
// It owns who may decide. It promises that the requester never decides where a
// person is asked for, under whatever key; that a person counts once; that one
// denial vetoes; that silence is a no; that exactly the bytes which were shown
// run, or exactly the edited ones; and that an approved call is given to one
// runner, once, whatever happens to tokens, Redis or the processes involved.
//
// The fence under all of it is the ledger: every step is a compare-and-set on
// the approval's record. It refuses to know about HTTP, pages or Slack: they all
// call [Desk.Decide].
package approval
