// Package ledger stores the durable state of approvals: one record per approval, on
// JetStream, changed by compare-and-set.
//
// Of several concurrent changes of a record, one succeeds and the others see its result. States only
// move forward ([State]). Arguments, definitions and results are returned byte for byte. Therefore
// the change to [Running] is the fence of an approved call: it succeeds once per approval, even if a
// token store loses or repeats data. An approval belongs to one call and derives its id from it, so a
// call has only one approval.
//
// [Ledger.Get], [Ledger.List] and watches may be slightly stale; [Ledger.Change] decides.
//
// It is one package because the record, its moves and its bytes are changed by one write: whoever
// changes one of them has to see the others.
//
// The package does not know who may decide, the number of approvals required, or who is notified:
// that is the responsibility of the desk (internal/approval). Whether an acknowledged write is on
// disk depends on the setting of the NATS server (sync_interval: always).
package ledger
