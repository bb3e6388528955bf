package records

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/callyard/callyard/internal/kit/sleep"
	"github.com/callyard/callyard/pkg/bus"
)

// writer is the recorder's goroutine. It gathers, packs and stores records.
type writer struct {
	*Recorder
	pack    *packer
	bytes   int // maximum message size
	entries []entry
	ready   []packed

	loggedAt   time.Time // when lost records were last logged
	loggedLost uint64
}

// entry is a record to be packed.
type entry struct {
	slot int64
	key  key
	call *Call
}

// packed is a message to be stored.
type packed struct {
	slot  int64
	data  []byte
	count int
}

func newWriter(r *Recorder) *writer {
	seal := r.sealed
	if r.ring == nil {
		seal = nil
	}
	return &writer{Recorder: r, pack: newPacker(r.frontDoor, seal), bytes: min(gatherBytes, r.store.maxBody()/2)}
}

func (w *writer) run() {
	defer close(w.done)
	timer := time.NewTimer(gatherTime)
	defer timer.Stop()
	sleeping, failing := false, false
	for {
		var asks []chan error
		select {
		case <-w.stop:
			w.finish()
			return
		case ask := <-w.asks:
			asks = w.allAsks(ask)
		case <-w.wake:
			if sleeping {
				sleeping = false
				w.asleep.Store(false)
				timer.Reset(gatherTime)
				continue
			}
			if failing {
				continue // the timer triggers the retry
			}
		case <-timer.C:
		}
		err := w.round(asks != nil)
		for _, ask := range asks {
			if err != nil {
				ask <- lateError(err)
			} else {
				ask <- nil
			}
		}
		w.logLost(false)
		switch failing = err != nil; {
		case failing:
			timer.Reset(retryWait)
		case w.idle():
			sleeping = true
			timer.Stop()
		default:
			timer.Reset(gatherTime)
		}
	}
}

// allAsks returns the first ask and all others that wait; one round serves them all.
func (w *writer) allAsks(first chan error) []chan error {
	asks := []chan error{first}
	for {
		select {
		case ask := <-w.asks:
			asks = append(asks, ask)
		default:
			return asks
		}
	}
}

// idle reports whether the writer can sleep until it is woken.
func (w *writer) idle() bool {
	w.asleep.Store(true) // set first, so that a record added during the check wakes the writer
	for i := range w.shards {
		sh := &w.shards[i]
		sh.mu.Lock()
		busy := len(sh.waiting) > 0 || sh.young.first != nil
		sh.mu.Unlock()
		if busy {
			w.asleep.Store(false)
			return false
		}
	}
	return true
}

// round stores the messages of a failed round, and then the waiting records. With all, it also
// records running calls of any age.
func (w *writer) round(all bool) error {
	if err := w.storeReady(context.Background(), storeTimeout); err != nil {
		return err
	}
	w.gather(all)
	return w.storeReady(context.Background(), storeTimeout)
}

// storeReady stores the packed messages in order. If an acknowledgment is lost, the message is
// stored twice, which readers tolerate.
func (w *writer) storeReady(ctx context.Context, each time.Duration) error {
	for len(w.ready) > 0 {
		m := &w.ready[0]
		one, cancel := context.WithTimeout(ctx, each)
		err := w.store.append(one, m.slot, m.data)
		cancel()
		switch {
		case errors.Is(err, bus.ErrTooLarge):
			w.log.Error("call records are too large for a message; they are dropped", "records", m.count, "bytes", len(m.data))
			w.lost.Add(uint64(m.count))
		case err != nil:
			return err
		default:
			w.written.Add(uint64(m.count))
		}
		*m = packed{}
		w.ready = w.ready[1:]
	}
	w.ready = nil
	return nil
}

// gather packs the waiting records.
func (w *writer) gather(all bool) {
	from := int64(math.MaxInt64)
	if !all {
		from = time.Now().Add(-runningAfter).UnixNano()
	}
	for i := range w.shards {
		sh := &w.shards[i]
		sh.mu.Lock()
		waiting := sh.waiting
		sh.waiting, sh.spare = sh.spare[:0], nil
		for c := sh.young.first; c != nil && c.rec.Admitted <= from; c = sh.young.first {
			sh.young.remove(c)
			c.young = false
			w.enter(&Call{rec: c.rec}) // a copy, because the call may end while it is packed
		}
		sh.mu.Unlock()
		for _, c := range waiting {
			w.enter(c)
		}
		clear(waiting)
		sh.mu.Lock()
		sh.spare = waiting[:0]
		sh.mu.Unlock()
	}
	w.packAll()
}

func (w *writer) enter(c *Call) {
	k, ok := keyOf(string(c.rec.ID))
	if !ok {
		w.log.Error("a call has an invalid id; its record is dropped")
		w.drop(c)
		return
	}
	w.entries = append(w.entries, entry{k.slot(), k, c})
}

// packAll packs the entries into messages, each for one slot. Entries are sorted by key, so that
// readers can exclude most messages by their key range.
func (w *writer) packAll() {
	slices.SortFunc(w.entries, func(a, b entry) int { return compareKeys(a.key, b.key) })
	for i := range w.entries {
		e := &w.entries[i]
		if c := e.call; c.arguments != nil {
			c.rec.Arguments = DigestOf(c.arguments)
			w.kept.Add(-int64(len(c.arguments)))
		}
		w.pack.add(e.key, &e.call.rec)
		if i+1 == len(w.entries) || w.entries[i+1].slot != e.slot || w.pack.count == gatherCount || w.pack.size() >= w.bytes {
			w.ready = append(w.ready, packed{e.slot, w.pack.message(), w.pack.count})
			w.pack.reset()
		}
	}
	clear(w.entries)
	if w.entries = w.entries[:0]; cap(w.entries) > 8*gatherCount {
		w.entries = nil // release the memory after a burst
	}
}

// finish stores the remaining records within closeTimeout, and closes the queues.
func (w *writer) finish() {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	for {
		err := w.storeReady(ctx, storeTimeout)
		if err == nil {
			if !w.shut() {
				break
			}
			continue
		}
		if !sleep.For(retryWait, ctx.Done()) {
			w.shut()
			for _, m := range w.ready {
				w.lost.Add(uint64(m.count))
			}
			break
		}
	}
	w.logLost(true)
}

// shut closes the queues, packs the remaining records, and reports whether there were any.
func (w *writer) shut() bool {
	for i := range w.shards {
		sh := &w.shards[i]
		sh.mu.Lock()
		sh.closed = true
		sh.mu.Unlock()
	}
	before := len(w.ready)
	w.gather(true)
	return len(w.ready) > before
}

// logLost logs the number of lost records, at most once per tellEvery unless now is set.
func (w *writer) logLost(now bool) {
	lost := w.lost.Load()
	if lost == w.loggedLost || !now && time.Since(w.loggedAt) < tellEvery {
		return
	}
	w.log.Warn("call records were dropped because they could not be stored fast enough; check that NATS is running and fast", "records", lost-w.loggedLost)
	w.loggedAt, w.loggedLost = time.Now(), lost
}
