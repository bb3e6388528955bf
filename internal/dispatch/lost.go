package dispatch

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

const (
	// lostFor limits the time for asking a worker about calls whose replies may be lost, and
	// lostAgain is the interval: the worker may still be reconnecting to NATS.
	lostFor   = 30 * time.Second
	lostAgain = 250 * time.Millisecond
	// movedKept is the capacity of the queue of workers to ask. If it is full, all workers are
	// asked.
	movedKept = 64
	// roamGrace is the time that a worker may be unreachable while it reconnects to another server
	// of a cluster, or to a restarted one, before it counts as gone.
	roamGrace = 2 * time.Second
	// returnGrace is the wait for a silent worker of a cluster to reconnect. It is the longest time
	// in which the worker, or this router, disconnects from a server that the others cannot reach.
	// Workers remember the outcomes of calls for longer than that plus the silence before it.
	returnGrace = 11 * time.Second
)

// kept reports whether the worker remembers the outcome of the call, because the call is in a
// ledger: it is durable or approved.
func kept(call *schema.Call) bool { return call.Durable || call.Approval != "" }

// waitsForWorker reports whether a call at a possibly disconnected worker waits for that worker, because
// the worker remembers the outcome and no other worker may run the call.
func waitsForWorker(to bus.Receiver) bool {
	a, ok := to.(*attempt)
	return ok && (kept(a.call) || a.brief) && a.ifSafe(tryAny) == tryNone
}

// allWorkers is the queue entry for a query to all workers.
const allWorkers = ""

// inquirer asks workers for the outcomes of calls whose replies may be lost.
type inquirer struct {
	router *Router
	moved  chan schema.WorkerID // workers that reconnected
}

// run asks for the outcomes of calls in flight each time this router or a worker has reconnected,
// because messages inside a NATS server are lost when it dies and are not sent again. Workers
// remember the outcomes of calls in a ledger, and for a few seconds those of other calls too.
func (q *inquirer) run(ctx context.Context, again <-chan struct{}) {
	var asking sync.WaitGroup
	defer asking.Wait()
	for {
		whom := schema.WorkerID(allWorkers)
		select {
		case <-ctx.Done():
			return
		case <-again:
		case whom = <-q.moved:
		}
		for to, calls := range q.unanswered(whom) {
			asking.Go(func() { q.askWorker(ctx, to, calls) })
		}
	}
}

// askSoon requests that a worker is asked soon.
func (q *inquirer) askSoon(worker schema.WorkerID) {
	select {
	case q.moved <- worker:
	default: // the queue is full: replace one entry by a query to all workers
		select {
		case <-q.moved:
		default:
		}
		select {
		case q.moved <- allWorkers:
		default:
		}
	}
}

// workerMemory is a worker with the kind of its memory: brief, or that of ledger calls.
type workerMemory struct {
	worker schema.WorkerID
	brief  bool
}

// lostCall is a call whose reply may be lost.
type lostCall struct {
	seq uint64
	to  *attempt
}

// unanswered returns the remembered calls that wait for the given worker, or for any worker.
func (q *inquirer) unanswered(whom schema.WorkerID) map[workerMemory]map[schema.CallID]lostCall {
	found := make(map[workerMemory]map[schema.CallID]lostCall)
	q.router.client.Waiting(func(seq uint64, worker schema.WorkerID, to bus.Receiver) {
		a, ok := to.(*attempt)
		if !ok || worker == anyWorker || whom != allWorkers && whom != worker || !kept(a.call) && !a.brief {
			return
		}
		at := workerMemory{worker, !kept(a.call)}
		if found[at] == nil {
			found[at] = make(map[schema.CallID]lostCall)
		}
		found[at][a.call.ID] = lostCall{seq, a}
	})
	return found
}

// askWorker asks one worker until it answers. A call that still runs there is answered later, over
// the new connection.
func (q *inquirer) askWorker(ctx context.Context, to workerMemory, calls map[schema.CallID]lostCall) {
	query := bus.OutcomeQuery{Brief: to.brief}
	for id, c := range calls {
		query.CallIDs, query.Seqs = append(query.CallIDs, id), append(query.Seqs, c.seq)
		query.Within = max(query.Within, time.Since(c.to.sent)+lostFor)
	}
	ctx, cancel := context.WithTimeout(ctx, lostFor)
	defer cancel()
	for {
		outcomes, err := q.router.askAll(ctx, to.worker, &query)
		if err == nil {
			n := 0
			for i := range outcomes {
				if q.answer(to.worker, calls[outcomes[i].CallID], &outcomes[i]) {
					n++
				}
			}
			if n > 0 {
				q.router.log.Info("messages that were lost with a connection to NATS were recovered", "worker", to.worker, "calls", n)
			}
			return
		}
		if !sleep(ctx, nil, lostAgain) {
			return
		}
	}
}

// answer ends a call with the outcome that its worker remembers, or with an error if the call did
// not arrive there. It reports whether the call was still waiting.
func (q *inquirer) answer(worker schema.WorkerID, c lostCall, outcome *Outcome) bool {
	f := &bus.ReplyFrame{Seq: c.seq, Worker: worker, Started: true}
	switch {
	case outcome.State == OutcomeNever && outcome.Refused:
		e := schema.Errorf(schema.KindUnavailable, "The call was lost on its way to worker %s; it did not start.", worker).RetryableAfter(time.Second)
		text, err := json.Marshal(e)
		if err != nil {
			return false
		}
		f.Kind, f.Payload, f.Started = bus.ReplyError, text, false
	case outcome.State == OutcomeForgotten && c.to.brief: // no other process knows the outcome, so there is no point in waiting
		outcome = &Outcome{State: OutcomeEnded, Err: unknown(c.to.call, "worker %s does not remember how it ended, and the connection to NATS was lost meanwhile", worker)}
		return q.answer(worker, c, outcome)
	case outcome.State != OutcomeEnded, outcome.Result != nil && outcome.Err != nil:
		return false // it still runs, or its result was too large to be kept
	case outcome.Err != nil:
		text, err := json.Marshal(outcome.Err)
		if err != nil {
			return false
		}
		f.Kind, f.Payload = bus.ReplyError, text
	case outcome.Result != nil:
		f.Kind, f.Payload, f.ToolError, f.Input, f.Took = bus.ReplyResult, outcome.Result.Body, outcome.Result.ToolError, outcome.Result.InputRequired, outcome.Result.Took
	default:
		return false
	}
	return q.router.client.Answer(f)
}

// look checks whether a worker that owes answers still listens. A worker that does not may be
// reconnecting to another server of a cluster or to a restarted one; after that, run asks it for
// the outcomes.
func (q *inquirer) look(ctx context.Context, id schema.WorkerID) {
	r := q.router
	w := r.worker(id)
	if w == nil {
		return
	}
	if r.client.Listens(ctx, id) {
		w.missed.Store(0)
		return
	}
	now := r.clock.now()
	if first := w.missed.CompareAndSwap(0, now); !r.client.Settled() && (first || now-w.missed.Load() < int64(roamGrace)) {
		return
	}
	r.client.Lost(id)
}
