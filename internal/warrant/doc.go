// Package warrant signs and checks the proof that an approved call may run.
//
// It defines the content of a warrant ([Claims]), its encoding, and the Ed25519 signature over
// it. A warrant fits one call only: the approval and the call that it names, the server, the tool,
// the tool's definition, the exact bytes of the arguments, the requester, and a deadline. A key
// that may only vouch for callers never vouches for people.
//
// The package rejects everything that it cannot parse to the last byte. It never decodes
// arguments: two texts with the same meaning are different texts.
//
// A warrant is not secret. It lets its reader run only the call that it names, and a worker runs
// that once ([UsedWarrants]).
package warrant
