// Package audit is the append-only record of requests, decisions and executions.
//
// Appending does not block while the queue has space. Callyard never changes a stored record and
// removes it only by age. [Reader.Verify] finds records that were changed, left out, moved, repeated
// or inserted, and a chain that was truncated.
//
// Each process writes a separate chain. A record is one line of JSON:
//
//	{"v":1,"writer":W,"seq":N,"prev":"HASH", … ,"hash":"HASH"}
//
// hash is the hex SHA-256 of the line's bytes before `,"hash"`, prev that of the previous record (64
// zeros for the first), and seq counts from 1. Many lines are stored at a time. The head of a chain,
// its last sequence and hash, is stored in a second place, so that truncation can be detected. The
// first head is stored before the first record; the last one closes the chain.
//
// This does not protect against an attacker who can write both places and recreates a chain and its
// head; external copies of heads do. An [Entry] cannot contain arguments, results or secrets, only
// digests.
package audit
