// Package journal durably stores sequences of calls: the accepted calls, the intents to send
// them, and their results. A batch of a million calls is one journal. The single durable
// calls of a front door go into a journal of that front door, its lane. One runner serves both.
//
// # Life of a journal
//
//	receiving → sealed → running → ended     any of the first three → canceling → ended
//
// [Store.Create] writes its [Manifest]. A [Writer] ([Store.Write]) appends calls, which get the
// indexes 0, 1, 2 … in stored order, and seals the journal after the last one. An owner
// ([Store.Claim]) reads the calls, appends intents before they are sent and results when they have
// ended, and ends the journal. A journal may be claimed and run while it is still receiving.
//
//	s, _ := journal.Open(ctx, conn, journal.Options{Log: log})
//	m := &journal.Manifest{Kind: journal.Batch, Principal: p, Expires: t}
//	_ = s.Create(ctx, m)
//	w, _ := s.Write(ctx, m.ID)               // resume at w.Next()
//	first, _ := w.Append(ctx, calls)         // synced when it returns
//	_ = w.Seal(ctx)
//
//	o, _ := s.Claim(ctx, m.ID, "frontdoor-1") // rebuilds the progress
//	for i, in := range o.Progress().Open() { … } // sent by an earlier owner, no result: ask in.Worker
//	calls, _ := o.Read(ctx, next, 1000)       // if none: o.Wait(ctx), then again
//	_ = o.Intend(ctx, journal.Intent(i, attempt, worker))
//	…send it, if o.Held()…
//	_ = o.Results(ctx, journal.ResultRecord{Index: i, Outcome: journal.Succeeded, Body: b})
//	_, _ = o.SetState(ctx, func(m *journal.Manifest) error { m.End(journal.Completed, ""); return nil })
//	_ = o.Release(ctx)
//
// # Guarantees
//
// An acknowledged record is stored once, in order. Each log has one writer at a time: an append
// names the last message that the writer knows of, and a new writer first appends a message
// itself, so that late or repeated appends of an earlier writer are refused. If the reply to an
// append is lost, the writer reads the log before it sends the append again; it reports success
// only once the record is known to be stored.
//
// A claim has an epoch, which only grows. In each log, the first append of epoch e+1 follows the
// last one of epoch e, regardless of clocks and leases: the lease only decides who should try. An
// owner that lost its claim learns it at its next append at the latest, and every later append is
// refused here and by the stream.
//
// Of several results of one call, the first one counts; [Judge] has the exceptions, in one place.
// [Owned] stores only results that count, so readers can use each record as it comes.
//
// A reader in the process that writes the log gets new messages from memory, once NATS has
// acknowledged them (recent.go). It requests the others from NATS.
//
// Reads by [Store.Get], [Store.List] and [Store.Watch] are hints and may be slightly stale;
// [Store.Change], Claim and the appends decide.
//
// # Idempotency keys
//
// A keyed call is appended first, with its Key, and then remembered ([Store.Remember]). It may run
// if that created or found an entry that names this call; otherwise it is canceled as a duplicate.
// An owner that finds a keyed call without intent and result does the same before it runs it. In
// this order, an entry always names a call that exists.
//
// # Limits of the package
//
// The package does not know the meaning of a call, when it may run, or how often to try it: that is
// up to the runner (internal/batch). Whether acknowledged records are on disk depends on the
// setting of the NATS server (sync_interval: always).
//
// All methods are safe for concurrent use. docs/adr/0010 explains why a message holds many records.
//
// It is one package because its logs, manifests, leases and keys keep one promise together:
// a part that could be written without the others would break it.
package journal
