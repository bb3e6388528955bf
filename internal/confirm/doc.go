// Package confirm mints and spends single-use confirmation tokens. A token is a secret that
// spends one approval.
//
// A token carries the id of its approval in front of 256 random bits, so that any process can
// find it, even a new one. The approval's record in internal/store/ledger holds the token's
// SHA-256 from the moment the call is held. Spending the token is a compare-and-set on that
// record: if several processes spend one token at once, one succeeds, regardless of any other
// state.
//
// Redis, if configured, is a gate before the ledger: it takes the token in one atomic step and
// rejects floods and replays before they reach the ledger. A token that Redis does not know is
// not spent. A flushed Redis forgets tokens, and a restored or failed-over one may release a
// token twice; in neither case does a call run twice. If Redis released a token to a process
// that then lost the ledger, the token is not lost: the ledger records whether it was spent.
// Without Redis the ledger does both, and a token needs no separate write. One test suite
// (internal/confirm/confirmtest) checks both configurations.
//
// The package does not know who may spend a token or what follows from spending it.
package confirm
