// Package journal keeps sequences of calls durably: the accepted calls, the intents to send
// them, and their results. A batch of a million calls is one journal; the single durable
// calls of a front door go into a journal of that front door's, its lane. One runner serves
// both.
//
// # Life of a journal
//
//	receiving → sealed → running → ended     any of the first three → canceling → ended
//
// [Store.Create] writes its [Manifest]. A [Writer] ([Store.Write]) appends calls,
// which get the indexes 0, 1, 2 … in the order in which they are stored, and
// seals it when there will be no more. An owner ([Store.Claim]) reads the calls,
// appends intents before they leave and results when they have ended, and ends it.
// A journal may be claimed and run while it is still receiving.
//
//	s, _ := journal.Open(ctx, conn, journal.Options{Log: log})
//	m := &journal.Manifest{Kind: journal.Batch, Principal: p, Expires: t}
//	_ = s.Create(ctx, m)
//	w, _ := s.Write(ctx, m.ID)               // resume at w.Next()
//	first, _ := w.Append(ctx, calls)         // synced when it returns
//	_ = w.Seal(ctx)
//
//	o, _ := s.Claim(ctx, m.ID, "frontdoor-1") // rebuilds what is done
//	for i, in := range o.Progress().Open() { … } // left under an earlier owner, no result: ask in.Worker
//	calls, _ := o.Read(ctx, next, 1000)       // none: o.Wait(ctx), then again
//	_ = o.Intend(ctx, journal.Intent(i, attempt, worker))
//	…send it, if o.Held()…
//	_ = o.Results(ctx, journal.ResultRecord{Index: i, Outcome: journal.Succeeded, Body: b})
//	_, _ = o.SetState(ctx, func(m *journal.Manifest) error { m.End(journal.Completed, ""); return nil })
//	_ = o.Release(ctx)
//
// # Promises
//
// What was acknowledged is stored, in order, once. Each log has one writer at a
// time: an append names the last message it knows of, and whoever takes over
// first writes a message of his own, so that nothing that an earlier writer sends,
// late or again, is taken any more. An append whose reply is lost is looked up
// before it is sent again; nobody is told that it is stored before that is known.
//
// A claim has an epoch that only grows. The first append of epoch e+1 is after the
// last one of epoch e, in each log, whatever clocks and leases say: the lease only
// decides who should try. An owner that lost learns it at its next append at
// the latest, and every later append is refused here and by the stream.
//
// Of several results of one call the first counts; [Judge] has the exceptions, in
// one place. [Owned] stores none that would not count, so readers can take each
// record as it comes.
//
// Who reads a log in the process that writes it is given what was just stored from
// memory, once NATS has acknowledged it (recent.go); what is not there is asked for.
//
// Reads by [Store.Get], [Store.List] and [Store.Watch] are hints, true a moment
// ago; [Store.Change], Claim and the appends decide.
//
// # Idempotency keys
//
// A keyed call is appended first, with its Key, and then remembered
// ([Store.Remember]); it may be run when that made or found an entry that names
// this very call, and is canceled as a duplicate else. An owner that finds a keyed
// call without intent and result does the same before it runs it. In this order an
// entry always names a call that exists.
//
// # Refusals
//
// The package does not know what a call means, when it may run, or how often it is
// tried: that is the runner's (internal/batch). Whether what is acknowledged is on
// the disk is the setting of the NATS server (sync_interval: always).
//
// All methods are safe for concurrent use. docs/adr/0010 says why records travel
// many in one message.
//
// It is one package because its logs, manifests, leases and keys keep one promise together:
// a part that could be written without the others would break it.
package journal
