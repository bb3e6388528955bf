package batch

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/callyard/callyard/internal/dispatch"
	"github.com/callyard/callyard/internal/ledger/journal"
)

// haul carries the plain calls of one journal: those that nothing holds up and nobody
// waits for. Instead of a goroutine for each call there are two for all, one that
// writes intents and one that stores results, each for as many calls at once as have
// come. Whatever does not go smoothly goes on with a goroutine of its own (item.go).
type haul struct {
	j      *job
	placed box[*dispatch.Parcel]
	ended  box[ending]
	// toPlaced and toEnded put into these what becomes of a parcel.
	toPlaced func(*dispatch.Parcel)
	toEnded  func(*dispatch.Parcel, dispatch.End)
}

// ending is a call that was hauled, and how that ended.
type ending struct {
	it  *item
	end dispatch.End
}

const (
	// gatherMany and gatherFor are for how many results, and how long, the writer waits
	// when it is busy: each write is synced to disk, whatever is in it. So do intents,
	// but only where many came at once: those calls stand behind others that left
	// already, and none waits for them yet.
	gatherMany = 128
	gatherFor  = 3 * time.Millisecond
	// largeResult is stored by a goroutine of its own: it may have to be put beside
	// the log.
	largeResult = 64 << 10
)

// sampled says that the spans of a traceparent are kept: its last digit has the flag.
func sampled(parent string) bool {
	return parent != "" && strings.IndexByte("13579bdf", parent[len(parent)-1]) >= 0
}

func newHaul(j *job) *haul {
	h := &haul{j: j, placed: newBox[*dispatch.Parcel](), ended: newBox[ending]()}
	h.toPlaced = h.placed.put
	h.toEnded = func(p *dispatch.Parcel, e dispatch.End) { h.ended.put(ending{p.Of.(*item), e}) }
	return h
}

// take hauls the call, which has a place in the window. False means that it needs
// more than that.
func (h *haul) take(it *item) bool {
	c := it.rec
	if c.Method != "" || c.Key != "" || len(c.Extra) > 0 || c.CallbackURL != "" || c.ArgumentsObject.Size > 0 || it.waited || h.j.late(it) || h.j.r.o.lost(h.j.m) {
		return false
	}
	verdict, err := h.j.r.o.Gate.Check(it.call)
	if err != nil || verdict.Assessment.Approval != nil {
		return false
	}
	if it.span = h.j.span(it); sampled(it.call.Trace.Parent) {
		it.checked = true
		return false // what is traced has each step of its way as a span
	}
	it.call.Bulk = true
	p := &dispatch.Parcel{Call: it.call, Of: it, Placed: h.toPlaced, Ended: h.toEnded}
	if !h.j.r.o.Gate.Ship(p, h.j.place(it)) {
		it.checked = true
		return false
	}
	h.j.mu.Lock()
	it.parcel = p
	h.j.mu.Unlock()
	// It may have come after the others were recalled, or taken back.
	if h.j.gone.Err() != nil {
		h.j.r.o.Router.Abandon(p)
	} else if h.j.stopping.Err() != nil || it.taken.Err() != nil {
		h.j.r.o.Router.Recall(p)
	}
	return true
}

// recall takes back what has not left.
func (h *haul) recall() { h.each(h.j.r.o.Router.Recall) }

// abandon gives up what has left too.
func (h *haul) abandon() { h.each(h.j.r.o.Router.Abandon) }

func (h *haul) each(f func(*dispatch.Parcel)) {
	var all []*dispatch.Parcel
	h.j.mu.Lock()
	for _, it := range h.j.here {
		if it.parcel != nil {
			all = append(all, it.parcel)
		}
	}
	h.j.mu.Unlock()
	for _, p := range all {
		f(p)
	}
}

// intend writes the intents of what was placed, and lets it leave, until over is
// closed.
func (h *haul) intend(over <-chan struct{}) {
	for busy := false; ; {
		placed := h.placed.take(over, busy)
		if placed == nil {
			return
		}
		busy = len(placed) >= gatherMany/4
		h.leave(placed)
	}
}

// leave lets calls leave once their intents are written. Those whose intents cannot
// be written are taken back.
func (h *haul) leave(placed []*dispatch.Parcel) {
	router, j := h.j.r.o.Router, h.j
	if j.stopping.Err() != nil {
		for _, p := range placed {
			router.Recall(p)
		}
		return
	}
	var free, intended []*dispatch.Parcel
	indexes := map[route][]uint64{}
	for _, p := range placed {
		it := p.Of.(*item)
		it.attempt++
		it.worker = p.Worker()
		it.begun.Store(true)
		if it.call.Safe || !intents {
			free = append(free, p) // it may be repeated: nobody needs to know that it left
			continue
		}
		intended = append(intended, p)
		to := route{it.worker, it.attempt}
		indexes[to] = append(indexes[to], it.rec.Index)
	}
	if router.Leave(free); len(intended) == 0 {
		return
	}
	var records []journal.IntentRecord
	for to, list := range indexes {
		slices.Sort(list)
		records = append(records, journal.Intents(list, to.attempt, to.worker))
	}
	writing, stop := bound(j.gone)
	err := j.o.Intend(writing, records...)
	stop()
	if err == nil && j.o.Held() {
		router.Leave(intended)
		return
	}
	h.j.noIntent(len(intended), err)
	for _, p := range intended {
		router.Recall(p) // without its intent it must not leave
	}
}

// route is where a call goes, for the how-manieth time.
type route struct {
	worker  string
	attempt int
}

// store stores the results of what ended, until over is closed. While many calls are
// under way more results come soon.
func (h *haul) store(over <-chan struct{}) {
	for busy := false; ; {
		ended := h.ended.take(over, busy)
		if ended == nil {
			return
		}
		busy = h.j.count.Load() >= gatherMany || h.j.r.o.Router.BatchPace() > 0
		h.storeAll(ended)
	}
}

func (h *haul) storeAll(ended []ending) {
	items := make([]*item, 0, len(ended))
	records := make([]journal.ResultRecord, 0, len(ended))
	for _, e := range ended {
		switch {
		case e.end.Err != nil:
			go h.retry(e)
		case len(e.end.Result.Body) > largeResult:
			go h.finish(e.it, func() { h.j.conclude(e.it, e.end.Result, nil) })
		default:
			items = append(items, e.it)
			records = append(records, h.j.record(e.it, e.end.Result, nil))
		}
	}
	if len(records) == 0 {
		return
	}
	h.j.o.ResultsThen(h.j.gone, func(err error) {
		for i, it := range items {
			h.finish(it, func() { h.j.stored(it, &records[i], err) })
		}
	}, records...)
}

// retry goes on with a call whose attempt failed.
func (h *haul) retry(e ending) {
	h.finish(e.it, func() {
		t := &tries{began: time.Now()}
		res, err, over := h.j.failed(e.it, t, e.end.Left, e.end.Err)
		if !over {
			if e.end.Again {
				t.wait = 0
			}
			res, err = h.j.try(e.it, t)
		}
		h.j.conclude(e.it, res, err)
	})
}

// finish ends what read began.
func (h *haul) finish(it *item, f func()) {
	defer h.j.leave(h.j.weight(it.rec))
	defer h.j.delist(it)
	f()
}

// box is a list that many goroutines put things into and one takes all out of.
type box[T any] struct {
	mu   *sync.Mutex
	all  *[]T
	many chan struct{} // has a word when many are there
	some chan struct{} // has a word when any are there
}

func newBox[T any]() box[T] {
	return box[T]{mu: new(sync.Mutex), all: new([]T), many: make(chan struct{}, 1), some: make(chan struct{}, 1)}
}

func (b box[T]) put(one T) {
	b.mu.Lock()
	defer b.mu.Unlock()
	*b.all = append(*b.all, one)
	switch len(*b.all) {
	case 1:
		ring(b.some)
	case gatherMany:
		ring(b.many)
	}
}

func ring(bell chan struct{}) {
	select {
	case bell <- struct{}{}:
	default:
	}
}

// take waits until something is there and takes all of it; when busy it waits a moment
// for more. It returns nil when over is closed and nothing is there.
func (b box[T]) take(over <-chan struct{}, busy bool) []T {
	for {
		if busy {
			timer := time.NewTimer(gatherFor)
			select {
			case <-b.many:
			case <-timer.C:
			case <-over:
			}
			timer.Stop()
		}
		b.mu.Lock()
		all := *b.all
		*b.all = nil
		select {
		case <-b.many: // what it rang for is taken
		default:
		}
		b.mu.Unlock()
		if len(all) > 0 {
			return all
		}
		busy = false
		select {
		case <-b.some:
		case <-over:
			b.mu.Lock()
			left := len(*b.all)
			b.mu.Unlock()
			if left == 0 {
				return nil
			}
		}
	}
}
