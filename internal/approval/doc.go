// Package approval implements the approval desk: it holds calls, records the decisions of
// approvers, and closes approvals.
//
// It decides who may decide. It guarantees that
//
//   - a requester never decides an approval that asks for people, under any key;
//   - each person counts once, and one denial vetoes the call;
//   - silence is a denial, even if the clock jumps;
//   - exactly the bytes that were shown run, or exactly the edited ones;
//   - an approved call is given to one runner, once, regardless of the state of tokens, Redis
//     or the processes involved;
//   - a standing permission, which a person who may decide alone grants for a limited time,
//     covers calls like the one it was granted with and no others.
//
// The ledger enforces all of this: every step is a compare-and-set on the approval's record,
// which is authoritative. The audit record is written afterwards, off the caller's path, and
// [Desk.Repair] writes the entries that a killed process could not. Holding a call is one
// synced write and confirming it a second one; the outcome is written after the caller has its
// answer.
//
// The package does not know about HTTP, pages or Slack, which all call [Desk.Decide]. It does
// not sign warrants; the signer is part of its [Options].
package approval
