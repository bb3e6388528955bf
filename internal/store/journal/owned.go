package journal

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/callyard/callyard/internal/kit/sleep"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

const (
	// lookAgain is the poll interval of a wait, in case a notification was lost.
	lookAgain = 3 * time.Second
	// readBytes and readMessages limit one read of a rebuild.
	readBytes    = 4 << 20
	readMessages = 256
)

// Read returns up to max calls starting at index. It returns none if there are no more now, and a
// [*GapError] if the calls at index were lost. Sequential reads need no search. Arguments in objects
// are not loaded; see [Store.Arguments].
func (o *Owned) Read(ctx context.Context, index uint64, max int) ([]CallRecord, error) {
	return o.reader.read(ctx, index, max)
}

// subscribe returns the subscription to the log of calls, and creates it at the first use.
func (o *Owned) subscribe() *subscription {
	o.wakeMu.Lock()
	defer o.wakeMu.Unlock()
	if o.subscription == nil {
		o.subscription = o.s.recent.join(o.id, LogCalls)
	}
	return o.subscription
}

// Wait returns when there may be calls after the last [Owned.Read], when the manifest was changed, or
// after some seconds. The first call returns immediately. The error is that of ctx, or a conflict if
// the journal was lost.
func (o *Owned) Wait(ctx context.Context) error {
	subscription := o.subscribe()
	o.wakeMu.Lock()
	if o.unlisten == nil {
		unlisten, err := o.s.logs.listen(o.id, LogCalls, subscription.appended)
		if err != nil {
			o.wakeMu.Unlock()
			return unavailable(err)
		}
		unwatch := o.s.WatchOne(o.of, o.id, func(*Manifest) { subscription.signal() })
		o.unlisten = func() { unlisten(); unwatch() }
		o.wakeMu.Unlock()
		return nil // earlier appends sent no notification
	}
	o.wakeMu.Unlock()
	timer := time.NewTimer(lookAgain)
	defer timer.Stop()
	select {
	case <-subscription.wake:
	case <-timer.C:
	case <-o.lost:
		return appendFault(o.id, errLost)
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// Intend stores the intent to send calls. If it returns nil, they may be sent if the journal is still
// Held. After an error they must not be sent, although the intent may be stored. The calls must not
// have ended, and Attempt must be greater than that of their [Progress.Standing].
func (o *Owned) Intend(ctx context.Context, r ...IntentRecord) error {
	if len(r) == 0 {
		return nil
	}
	p := packer{most: o.s.most}
	for i := range r {
		if !orderly(r[i].Ranges) {
			return schema.Errorf(schema.KindInternal, "The indexes of an intent of journal %s do not ascend.", o.id)
		}
		if err := p.add(func(dst []byte) []byte { return appendIntent(dst, &r[i]) }); err != nil {
			return schema.Errorf(schema.KindInternal, "The intent is too large. (%w)", err)
		}
	}
	_, err := o.intents.append(ctx, p.pieces)
	return appendFault(o.id, err)
}

// orderly reports whether the ranges are valid for an intent record.
func orderly(ranges []Range) bool {
	at := uint64(0)
	for _, g := range ranges {
		if g.First < at || g.Count == 0 || g.First >= maxIndex || g.Count > maxIndex {
			return false
		}
		at = g.First + g.Count
	}
	return len(ranges) > 0
}

// Results stores results of calls. Results that would not count ([Judge]) are dropped without an error.
// Bodies and errors over 256 KiB are stored outside the log, and BodyObject of the passed record is
// set. After an error, Results may be repeated. If ctx ends first, the append continues, and its
// records are not stored again.
func (o *Owned) Results(ctx context.Context, r ...ResultRecord) error {
	c := make(chan error, 1)
	o.ResultsThen(ctx, func(err error) { c <- err }, r...)
	select {
	case err := <-c:
		return err
	case <-ctx.Done():
		return unavailable(fmt.Errorf("waiting for the append, which may still come: %w", ctx.Err()))
	}
}

// ResultsThen is Results without waiting for the write: done is called once with the outcome, on this
// goroutine or on one that must not be blocked. It blocks while too many bytes are pending; ctx bounds
// only that.
func (o *Owned) ResultsThen(ctx context.Context, done func(error), r ...ResultRecord) {
	p := packer{most: o.s.most, many: len(r) >= manyRecords}
	lane := o.manifest.Load().Kind == Lane
	for i := range r {
		if r[i].Tenant = r[i].Tenant.Stored(); !lane {
			r[i].Tenant = "" // the same as the journal's
		}
	}
	r, err := o.storable(ctx, r)
	if err != nil {
		done(err)
		return
	}
	var taken [][]applied // by piece
	for i := range r {
		mark := r[i].Mark()
		u, counts := o.progress.apply(mark)
		if !counts {
			continue
		}
		err := p.add(func(dst []byte) []byte { return appendResult(dst, &r[i]) })
		if len(taken) < len(p.pieces) {
			taken = append(taken, nil)
		}
		last := len(taken) - 1
		taken[last] = append(taken[last], applied{u, mark})
		if err != nil {
			for _, t := range slices.Backward(taken) {
				o.revert(t)
			}
			done(schema.Errorf(schema.KindTooLarge, "The description of the result is too large. (%w)", err).WithCall(r[i].CallID))
			return
		}
	}
	if len(p.pieces) == 0 {
		done(nil)
		return
	}
	// Pieces are stored or fail independently. Only the records of failed pieces are reverted.
	var mu sync.Mutex
	left, failed := len(p.pieces), error(nil)
	for i := range p.pieces {
		over := func(_ uint64, err error) {
			if err != nil {
				o.revert(taken[i])
			}
			mu.Lock()
			if left--; failed == nil {
				failed = err
			}
			last := left == 0
			mu.Unlock()
			if last {
				done(appendFault(o.id, failed))
			}
		}
		if err := o.results.submit(ctx, p.pieces[i:i+1], over); err != nil {
			over(0, err)
		}
	}
}

// storable returns the records in stored form. It stores large bodies outside the log and updates the
// given records accordingly.
func (o *Owned) storable(ctx context.Context, r []ResultRecord) ([]ResultRecord, error) {
	of, stored := o.tenant(), r
	if o.s.ring != nil {
		stored = slices.Clone(r) // the caller's records keep their readable bodies
	}
	for i := range r {
		if r[i].Index >= maxIndex {
			return nil, schema.Errorf(schema.KindInternal, "A journal has no call %d.", r[i].Index)
		}
		large := r[i].Body
		if len(r[i].Error) > 0 {
			large = r[i].Error
		}
		if len(large) > o.s.inline {
			at, err := o.s.objects.store(ctx, r[i].tenant(of), o.id, large)
			if err != nil {
				return nil, err
			}
			r[i].Body, r[i].Error, r[i].BodyObject = nil, nil, at
		}
		one, err := sealResult(ctx, o.s.ring, of, o.id, &r[i])
		if err != nil {
			return nil, err
		}
		stored[i] = *one
	}
	return stored, nil
}

// tenant returns the tenant of the journal. Calls of a lane have separate tenants.
func (o *Owned) tenant() schema.TenantID { return o.manifest.Load().Principal.Tenant }

func (o *Owned) revert(taken []applied) {
	for _, a := range slices.Backward(taken) {
		o.progress.revert(a.undo, a.mark)
	}
}

// applied is a record that counts and is being appended to the log.
type applied struct {
	undo previousState
	mark Mark
}

// SetState changes the manifest, as [Store.Change] does, if this owner still has the journal. It sets
// Counts after f.
func (o *Owned) SetState(ctx context.Context, f func(*Manifest) error) (*Manifest, error) {
	m, err := o.s.change(ctx, o.of, o.id, func(m *Manifest) error {
		if m.Epoch != o.Epoch() {
			return appendFault(o.id, errLost)
		}
		if err := f(m); err != nil {
			return err
		}
		m.Counts = o.progress.Counts()
		return nil
	})
	if err == nil {
		o.manifest.Store(m)
	}
	return m, err
}

// rebuild reads the outcomes of the calls. The logs must be fenced.
func (o *Owned) rebuild(ctx context.Context) error {
	accepted := o.manifest.Load().Calls
	m, err := o.s.logs.Last(ctx, o.id, LogCalls)
	switch {
	case err == nil:
		h, _, err := ReadHead(m.Data, LogCalls)
		if err != nil {
			return damaged(o.id, err)
		}
		accepted = max(accepted, h.First+uint64(h.Count)) // h counts more than accepted if records were lost
	case !isNotFound(err):
		return unavailable(err)
	}
	o.progress = newProgress(accepted)
	o.reader = reader{logs: o.s.logs, ring: o.s.ring, id: o.id, subscribe: o.subscribe}
	err = o.s.logs.readAll(ctx, o.id, LogResults, o.results.last, func(data []byte) error {
		_, err := scanResults(data, o.progress.stored)
		return err
	})
	if err != nil {
		return err
	}
	return o.s.logs.readAll(ctx, o.id, LogIntents, o.intents.last, func(data []byte) error {
		h, _, err := ReadHead(data, LogIntents)
		if err != nil {
			return err
		}
		_, err = readIntents(data, func(r *IntentRecord) {
			for _, g := range r.Ranges {
				o.progress.know(g.First + g.Count - 1)
			}
			o.progress.intent(&h, r)
		})
		return err
	})
}

// readAll calls each with every message of a log up to the sequence last, which must exist. It retries
// reads from replicas that do not have it yet.
func (l *logs) readAll(ctx context.Context, id schema.BatchID, log Log, last uint64, each func([]byte) error) error {
	type page struct {
		messages []bus.Message
		err      error
	}
	fetch := func(from uint64) chan page {
		c := make(chan page, 1)
		go func() {
			found, err := l.Read(ctx, id, log, from, readMessages, readBytes)
			c <- page{found, err}
		}()
		return c
	}
	if last == 0 {
		return nil
	}
	from, over := uint64(1), false
	for next := fetch(from); ; {
		p := <-next // no select on ctx: Read returns when it ends
		if p.err != nil {
			return unavailable(p.err)
		}
		if n := len(p.messages); n > 0 {
			from = p.messages[n-1].Sequence + 1
			over = p.messages[n-1].Sequence >= last
		}
		if len(p.messages) == 0 && !sleep.For(50*time.Millisecond, ctx.Done()) {
			return unavailable(ctx.Err())
		}
		if !over {
			next = fetch(from) // prefetch while this page is processed
		}
		for _, m := range p.messages {
			if err := each(m.Data); err != nil {
				if !over {
					<-next
				}
				return damaged(id, err)
			}
		}
		if over {
			return nil
		}
	}
}
