// Package audit keeps the append-only record of who asked, who decided and what
// ran.
//
// It promises that appending costs a caller no wait while the queue has room, that Callyard
// never changes a stored record and removes it only by age, and that [Reader.Verify] finds
// a record that was changed, left out, moved, repeated or put in, and a chain that was
// truncated.
//
// Each process writes a chain of its own. A record is one line of JSON:
//
//	{"v":1,"writer":W,"seq":N,"prev":"HASH", … ,"hash":"HASH"}
//
// hash is the hex SHA-256 of the line's bytes before `,"hash"`, prev that of the
// record before it (64 zeros for the first), seq counts from 1. Lines are stored
// many at a time. How far a chain has come, its head, is kept in a second place,
// where a cut end shows; the first head is there before the first record, the
// last one closes the chain.
//
// It does not protect against somebody who may write both places and makes a
// chain and its head again: copies of heads outside do. It refuses arguments,
// results and secrets: an [Entry] has digests only.
package audit
