// Package warrant signs and checks the proof that an approved call may run.
//
// It owns the form of a warrant: what it says ([Claims]), how that is written
// as bytes, and the Ed25519 signature over them. It promises that a warrant fits
// one call only: the approval and the call it names, server, tool, the tool's
// definition, the exact bytes of the arguments, who asked, and a deadline; and
// that a key which may only speak for callers never speaks for people.
//
// It refuses everything that it cannot read to the last byte, and it never
// decodes arguments: two texts that mean the same are two texts.
//
// A warrant is no secret: whoever reads one can run nothing with it but the call
// that it names, and a worker runs that once ([Spent]).
package warrant
