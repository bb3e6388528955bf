package journal

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

const (
	// lookAgain is how long a wait trusts that it is told of an append.
	lookAgain = 3 * time.Second
	// readBytes and readMessages bound one read of a rebuild.
	readBytes    = 4 << 20
	readMessages = 256
)

// Read returns up to max calls from index on; none when there are no more now, and a
// [*GapError] where those at index were lost.
// Reading on from where the last Read ended costs no search. Arguments that lie
// in objects are left there; see [Store.Arguments].
func (o *Owned) Read(ctx context.Context, index uint64, max int) ([]CallRecord, error) {
	return o.reader.read(ctx, index, max)
}

// sit returns the seat at the calls.
func (o *Owned) sit() *subscription {
	o.wakeMu.Lock()
	defer o.wakeMu.Unlock()
	if o.subscription == nil {
		o.subscription = o.s.recent.join(o.id, LogCalls)
	}
	return o.subscription
}

// Wait returns when there may be more calls than the last [Owned.Read] saw, or the
// manifest was changed, or after some seconds. The first time it returns at once.
// The error is that of ctx, or a conflict when the journal was lost.
func (o *Owned) Wait(ctx context.Context) error {
	subscription := o.sit()
	o.wakeMu.Lock()
	if o.unlisten == nil {
		unlisten, err := o.s.logs.listen(o.id, LogCalls, subscription.hear)
		if err != nil {
			o.wakeMu.Unlock()
			return unavailable(err)
		}
		unwatch := o.s.WatchOne(o.of, o.id, func(*Manifest) { subscription.ring() })
		o.unlisten = func() { unlisten(); unwatch() }
		o.wakeMu.Unlock()
		return nil // what came before it was listened did not ring
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

// Intend stores that calls are about to leave. When it returns nil they may, if
// the journal is still Held. After an error they must not, and an intent may be
// stored all the same. The calls must not have ended, and Attempt must be above that
// of their [Progress.Standing].
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

// orderly says that ranges can be written.
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

// Results stores ends of calls. Those that would not count ([Judge]) are left out without
// an error. Bodies and errors above 256 KiB are put outside the log, as BodyObject, and the
// record is changed to say so. After an error they may be repeated. When ctx ends first,
// the append continues; what it stores is not stored again.
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

// ResultsThen is Results without waiting for the disk: done is called once with
// what became of it, on this goroutine or on one that must not be blocked. It waits
// while too much is under way; ctx bounds that only.
func (o *Owned) ResultsThen(ctx context.Context, done func(error), r ...ResultRecord) {
	p := packer{most: o.s.most, many: len(r) >= manyRecords}
	lane := o.manifest.Load().Kind == Lane
	for i := range r {
		if r[i].Tenant = r[i].Tenant.Stored(); !lane {
			r[i].Tenant = "" // that of the journal
		}
	}
	r, err := o.storable(ctx, r)
	if err != nil {
		done(err)
		return
	}
	var taken [][]applied // for each piece
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
				o.takeBack(t)
			}
			done(schema.Errorf(schema.KindTooLarge, "The description of the result is too large. (%w)", err).WithCall(r[i].CallID))
			return
		}
	}
	if len(p.pieces) == 0 {
		done(nil)
		return
	}
	// Each piece is stored or not by itself: what is taken back must not be there.
	var mu sync.Mutex
	left, failed := len(p.pieces), error(nil)
	for i := range p.pieces {
		over := func(_ uint64, err error) {
			if err != nil {
				o.takeBack(taken[i])
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

// storable returns the records as they are stored. Large bodies are put outside the log, which
// the given records say from then on.
func (o *Owned) storable(ctx context.Context, r []ResultRecord) ([]ResultRecord, error) {
	of, stored := o.tenant(), r
	if o.s.ring != nil {
		stored = slices.Clone(r) // those of the caller stay readable
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

// tenant is that of the journal; calls of a lane have their own.
func (o *Owned) tenant() schema.TenantID { return o.manifest.Load().Principal.Tenant }

func (o *Owned) takeBack(taken []applied) {
	for _, a := range slices.Backward(taken) {
		o.progress.takeBack(a.undo, a.mark)
	}
}

// applied is a record that counts and is on its way to the log.
type applied struct {
	undo undo
	mark Mark
}

// SetState changes the manifest, as [Store.Change] does, when this owner still has
// the journal. Counts are filled in after f.
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

// rebuild reads what became of the calls. It is called when the logs are fenced.
func (o *Owned) rebuild(ctx context.Context) error {
	accepted := o.manifest.Load().Calls
	m, err := o.s.logs.Last(ctx, o.id, LogCalls)
	switch {
	case err == nil:
		h, _, err := ReadHead(m.Data, LogCalls)
		if err != nil {
			return damaged(o.id, err)
		}
		accepted = max(accepted, h.First+uint64(h.Count)) // fewer than were counted where records were lost
	case !isNotFound(err):
		return unavailable(err)
	}
	o.progress = newProgress(accepted)
	o.reader = reader{logs: o.s.logs, ring: o.s.ring, id: o.id, sit: o.sit}
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

// readAll calls each with every message of a log up to the one with the sequence
// last, which must be there: replicas that do not have it yet are asked again.
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
		p := <-next // also when ctx ends: Read returns then
		if p.err != nil {
			return unavailable(p.err)
		}
		if n := len(p.messages); n > 0 {
			from = p.messages[n-1].Sequence + 1
			over = p.messages[n-1].Sequence >= last
		}
		if len(p.messages) == 0 {
			select {
			case <-time.After(50 * time.Millisecond):
			case <-ctx.Done():
				return unavailable(ctx.Err())
			}
		}
		if !over {
			next = fetch(from) // while this page is read
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
