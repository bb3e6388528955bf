// Package confirm mints single-use confirmation tokens and spends them: secrets
// that each spend one approval.
//
// A token carries the id of its approval in front of 256 random bits, so that it
// is found by any process, however new it is. The approval's record in
// internal/store/ledger keeps its SHA-256 from the moment it is held, and the change
// of that record which spends it, first writer wins, is the fence: of many who
// spend one token at once one succeeds, whatever else remembers or forgets.
//
// Where there is Redis it stands as a gate before that fence: it takes the token
// in one atomic step and turns floods and replays away before they reach the
// ledger, and a token that Redis does not know is not spent. A Redis that was
// flushed forgets tokens, one that was restored or failed over may give a token
// twice; either way nothing runs twice. A token that Redis gave to somebody who
// then lost the ledger is not lost: the ledger says whether it was spent. Without Redis the ledger is gate and
// fence in one, and a token costs no write of its own. One suite
// (internal/confirm/confirmtest) holds both to the same promises.
//
// It refuses to know who may spend a token, and what a spent one leads to.
package confirm
