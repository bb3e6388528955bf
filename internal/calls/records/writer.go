package records

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/callyard/callyard/pkg/bus"
)

// writer is the recorder's goroutine: it gathers, packs and stores.
type writer struct {
	*Recorder
	pack    *packer
	bytes   int // of a message, at most
	entries []entry
	ready   []packed

	told     time.Time // when it was last said that records were lost
	toldLost uint64
}

// entry is a record that is about to be packed.
type entry struct {
	slot int64
	key  key
	call *Call
}

// packed is a message that is to be stored.
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
				continue // the timer says when to try again
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
		w.tell(false)
		switch failing = err != nil; {
		case failing:
			timer.Reset(retryWait)
		case w.nothing():
			sleeping = true
			timer.Stop()
		default:
			timer.Reset(gatherTime)
		}
	}
}

// allAsks returns the first ask and those that wait next to it: one round serves
// them all.
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

// nothing says whether the writer can sleep until it is woken.
func (w *writer) nothing() bool {
	w.asleep.Store(true) // first: who comes now wakes it
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

// round stores what could not be stored before, and then what waits now. With
// all set that includes calls that run, however young.
func (w *writer) round(all bool) error {
	if err := w.storeReady(context.Background(), storeTimeout); err != nil {
		return err
	}
	w.gather(all)
	return w.storeReady(context.Background(), storeTimeout)
}

// storeReady stores the packed messages, one after the other. One whose answer
// was lost is stored twice, which readers do not notice.
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

// gather takes what waits and packs it.
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
			w.enter(&Call{rec: c.rec}) // a copy: the call may end while it is packed
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

// packAll makes messages of the entries, each of one slot. They are in order, so
// that a reader can tell of most messages that a call is not in them.
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
		w.entries = nil // after a flood
	}
}

// finish stores what is left, as far as that goes in time, and takes no more.
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
		select {
		case <-ctx.Done():
			w.shut()
			for _, m := range w.ready {
				w.lost.Add(uint64(m.count))
			}
			w.tell(true)
			return
		case <-time.After(retryWait):
		}
	}
	w.tell(true)
}

// shut takes what waits, lets no more in, and says whether there was anything.
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

// tell says how many records were lost, not too often.
func (w *writer) tell(now bool) {
	lost := w.lost.Load()
	if lost == w.toldLost || !now && time.Since(w.told) < tellEvery {
		return
	}
	w.log.Warn("call records were dropped because they could not be stored fast enough; check that NATS is running and fast", "records", lost-w.toldLost)
	w.told, w.toldLost = time.Now(), lost
}
