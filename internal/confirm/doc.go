// Package confirm keeps single-use confirmation tokens: secrets that each spend
// one approval.
//
// It promises that of many who take one token at once one gets it, that the same
// attempt gets the same answer however often it asks, that a token which was
// spent names its approval for a day, so that a caller can be shown the result,
// and that only the SHA-256 of a token is ever stored. One suite
// (internal/confirm/confirmtest) holds both stores to that.
//
// It does not promise more than its store: a Redis that was flushed forgets
// tokens, one that was restored or failed over may give a token twice. A token
// is therefore a gate, and the approval's record in internal/ledger the fence:
// whoever took a token runs nothing before the record went to running.
//
// It refuses to know what an approval is, and who may spend it.
package confirm
