package batch

import (
	"slices"
	"strings"
	"time"

	"github.com/callyard/callyard/internal/calls/execution"
	"github.com/callyard/callyard/internal/dispatch"
	"github.com/callyard/callyard/internal/store/journal"
	"github.com/callyard/callyard/pkg/schema"
)

// pipeline sends the plain calls of one journal: those that can be sent at once and have no
// waiting caller. Instead of a goroutine for each call it has two for all calls. One writes
// intents and one stores results, each for all calls that are ready. A call that does not succeed
// at once continues in a separate goroutine (execute.go).
type pipeline struct {
	l       *lease
	results *results
	exec    *executor
	placed  collector[*dispatch.AsyncCall]
	ended   collector[ending]
	// toPlaced and toEnded add to placed and ended.
	toPlaced func(*dispatch.AsyncCall)
	toEnded  func(*dispatch.AsyncCall, dispatch.End)
}

// ending is a call of the pipeline with its outcome.
type ending struct {
	it  *item
	end dispatch.End
}

const (
	// gatherMany and gatherFor limit the number of results that a busy writer collects and the
	// time that it waits for them, because each write is synced to disk, whatever its size.
	// Intents are collected too, but only if many came at once: such calls queue behind others
	// that were already sent, and no caller waits for them yet.
	gatherMany = 128
	gatherFor  = 3 * time.Millisecond
	// Results above largeResult are stored by separate goroutines, because they may have to be
	// stored outside the log.
	largeResult = 64 << 10
)

// sampled reports whether a traceparent has the sampled flag, which is in its last digit.
func sampled(parent string) bool {
	return parent != "" && strings.IndexByte("13579bdf", parent[len(parent)-1]) >= 0
}

func newPipeline(l *lease, results *results, exec *executor) *pipeline {
	p := &pipeline{l: l, results: results, exec: exec, placed: newCollector[*dispatch.AsyncCall](), ended: newCollector[ending]()}
	p.toPlaced = p.placed.put
	p.toEnded = func(sent *dispatch.AsyncCall, e dispatch.End) { p.ended.put(ending{sent.Of.(*item), e}) }
	return p
}

// take sends a call that has a place in the window. It returns false if the call needs an
// executor.
func (p *pipeline) take(it *item) bool {
	c := it.rec
	if c.Method != "" || c.Key != "" || len(c.Extra) > 0 || c.CallbackURL != "" || c.ArgumentsObject.Size > 0 || it.waited || it.late() || p.l.lost() || p.exec.held.mayBeFormer(it) {
		return false
	}
	verdict, err := p.l.o.Gate.Check(it.call)
	if err != nil || verdict.Assessment.Approval != nil {
		return false
	}
	it.judged = execution.DecisionOf(&verdict, nil)
	if it.span = p.l.span(it); sampled(it.call.Trace.Parent) {
		it.checked = true
		return false // the executor creates a span for each step of a sampled trace
	}
	it.call.Bulk = true
	sent := &dispatch.AsyncCall{Call: it.call, Of: it, Placed: p.toPlaced, Ended: p.toEnded}
	if !p.l.o.Chain.Start(sent, p.l.plan(it)) {
		it.checked = true
		return false
	}
	p.l.calls.send(it, sent)
	// The call may have been added after the others were recalled, or been canceled.
	if p.l.life.gone.Err() != nil {
		p.l.o.Router.Abandon(sent)
	} else if p.l.life.stopping.Err() != nil || it.taken.Err() != nil {
		p.l.o.Router.Recall(sent)
	}
	return true
}

// recall recalls the calls that have not been sent.
func (p *pipeline) recall() { p.each(p.l.o.Router.Recall) }

// abandon abandons all calls, including those that were sent.
func (p *pipeline) abandon() { p.each(p.l.o.Router.Abandon) }

func (p *pipeline) each(f func(*dispatch.AsyncCall)) {
	for _, sent := range p.l.calls.sent() {
		f(sent)
	}
}

// intend writes the intents of placed calls and sends them, until over is closed.
func (p *pipeline) intend(over <-chan struct{}) {
	for busy := false; ; {
		placed := p.placed.take(over, busy)
		if placed == nil {
			return
		}
		busy = len(placed) >= gatherMany/4
		p.leave(placed)
	}
}

// leave sends calls after writing their intents. It recalls calls whose intents cannot be written.
func (p *pipeline) leave(placed []*dispatch.AsyncCall) {
	router := p.l.o.Router
	if p.l.life.stopping.Err() != nil {
		for _, sent := range placed {
			router.Recall(sent)
		}
		return
	}
	var free, intended []*dispatch.AsyncCall
	indexes := map[intentGroup][]uint64{}
	for _, sent := range placed {
		it := sent.Of.(*item)
		it.attempt++
		it.worker = sent.Worker()
		it.begun.Store(true)
		if !needsIntent(it.call) {
			free = append(free, sent) // safe to repeat, so it needs no intent
			continue
		}
		intended = append(intended, sent)
		to := intentGroup{it.worker, it.attempt}
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
	writing, stop := bound(p.l.life.gone)
	err := p.l.owned.Intend(writing, records...)
	stop()
	if err == nil && p.l.owned.Held() {
		router.Leave(intended)
		return
	}
	p.l.noIntent(len(intended), err)
	for _, sent := range intended {
		router.Recall(sent) // it must not be sent without its intent
	}
}

// intentGroup identifies the intents that share a record: the same attempt number at one worker.
type intentGroup struct {
	worker  schema.WorkerID
	attempt int
}

// store stores the results of ended calls, until over is closed. It is busy while many calls are
// in flight, because more results follow soon.
func (p *pipeline) store(over <-chan struct{}) {
	for busy := false; ; {
		ended := p.ended.take(over, busy)
		if ended == nil {
			return
		}
		busy = p.l.window.count.Load() >= gatherMany || p.l.o.Router.BatchPace() > 0
		p.storeAll(ended)
	}
}

func (p *pipeline) storeAll(ended []ending) {
	items := make([]*item, 0, len(ended))
	records := make([]journal.ResultRecord, 0, len(ended))
	for _, e := range ended {
		switch {
		case e.end.Err != nil:
			go p.retry(e)
		case len(e.end.Result.Body) > largeResult:
			go p.finish(e.it, func() { p.results.conclude(e.it, e.end.Result, nil) })
		default:
			items = append(items, e.it)
			records = append(records, p.results.record(e.it, e.end.Result, nil))
		}
	}
	if len(records) == 0 {
		return
	}
	p.l.owned.ResultsThen(p.l.life.gone, func(err error) {
		for i, it := range items {
			p.finish(it, func() { p.results.stored(it, &records[i], err) })
		}
	}, records...)
}

// retry continues a call after a failed attempt.
func (p *pipeline) retry(e ending) {
	p.finish(e.it, func() {
		t := &retryState{began: time.Now()}
		res, err, over := p.exec.failed(e.it, t, e.end.Left, e.end.Err)
		if over {
			p.exec.recordFailure(e.it, t, err)
		} else {
			if e.end.Again {
				t.wait = 0
			}
			res, err = p.exec.try(e.it, t)
		}
		p.results.conclude(e.it, res, err)
	})
}

// finish runs f and then frees the call's place in the window.
func (p *pipeline) finish(it *item, f func()) {
	defer p.l.window.leave(p.l.window.weight(it.rec))
	defer p.l.calls.delist(it)
	f()
}
