// Package ledger keeps the durable state of approvals: one record for each, on
// JetStream, changed by compare-and-set.
//
// It promises that of all who change a record at once one wins and the others see what the
// winner wrote, that states move forward only ([State]), and that arguments, definitions
// and results are returned byte for byte. The change to [Running] is therefore the fence of
// an approved call: whatever a token store forgets or repeats, it succeeds once for each
// approval. An approval belongs to one call and takes its id from it, so a call is asked
// about once.
//
// What [Ledger.Get], [Ledger.List] and a watch show is a hint, true a moment
// ago; [Ledger.Change] decides.
//
// It is one package because the record, its moves and its bytes are changed by one write: whoever
// changes one of them has to see the others.
//
// It refuses to know who may decide, how many must, and what is told to whom:
// that is the desk's (internal/approval). Whether a write is on the disk when it
// is acknowledged is the setting of the NATS server (sync_interval: always).
package ledger
