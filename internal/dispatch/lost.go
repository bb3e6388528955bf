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
	// lostFor is how long a worker is asked about calls whose replies may be lost, and
	// lostAgain how often: the worker may still be reconnecting to NATS.
	lostFor   = 30 * time.Second
	lostAgain = 250 * time.Millisecond
	// movedKept is how many workers may wait to be asked; with more, all are.
	movedKept = 64
	// roamGrace is how long a worker may be deaf, on its way from one server of a cluster to
	// the next or back to the one that started again, before it counts as gone.
	roamGrace = 2 * time.Second
	// returnGrace is how long a worker of a cluster that fell silent is awaited: so long
	// it, or this router, takes at most to leave a server that the others do not reach.
	// Workers remember how calls ended for longer than that and the silence before it.
	returnGrace = 11 * time.Second
)

// kept says that the worker remembers how the call ends: it stands in a ledger, as a
// durable call or as one that was approved.
func kept(call *schema.Call) bool { return call.Durable || call.Approval != "" }

// awaited says whether a call that is under way at a worker which may only be disconnected
// waits for it: the worker remembers its end, and no other worker may run it.
func awaited(to bus.Receiver) bool {
	a, ok := to.(*attempt)
	return ok && (kept(a.call) || a.brief) && a.ifSafe(tryAny) == tryNone
}

// everybody stands for all workers.
const everybody = ""

// inquirer asks workers for the ends of calls whose replies may be lost.
type inquirer struct {
	router *Router
	moved  chan schema.WorkerID // workers whose connections were made again
}

// run asks what became of calls under way each time that this connection, or a
// worker's, stands again: what NATS held when it died is gone, and nobody sends a
// message twice. Workers remember the calls of a ledger, and for a few seconds the others too.
func (q *inquirer) run(ctx context.Context, again <-chan struct{}) {
	var asking sync.WaitGroup
	defer asking.Wait()
	for {
		whom := schema.WorkerID(everybody)
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

// later has a worker asked soon.
func (q *inquirer) later(worker schema.WorkerID) {
	select {
	case q.moved <- worker:
	default: // with a full queue, one query to all is as good
		select {
		case <-q.moved:
		default:
		}
		select {
		case q.moved <- everybody:
		default:
		}
	}
}

// addressee is a worker and which of its memories is meant.
type addressee struct {
	worker schema.WorkerID
	brief  bool
}

// lostCall is a call whose reply may be lost.
type lostCall struct {
	seq uint64
	to  *attempt
}

// unanswered are the calls that wait for the worker, or for any, and that it remembers.
func (q *inquirer) unanswered(whom schema.WorkerID) map[addressee]map[schema.CallID]lostCall {
	found := make(map[addressee]map[schema.CallID]lostCall)
	q.router.client.Waiting(func(seq uint64, worker schema.WorkerID, to bus.Receiver) {
		a, ok := to.(*attempt)
		if !ok || worker == anyWorker || whom != everybody && whom != worker || !kept(a.call) && !a.brief {
			return
		}
		at := addressee{worker, !kept(a.call)}
		if found[at] == nil {
			found[at] = make(map[schema.CallID]lostCall)
		}
		found[at][a.call.ID] = lostCall{seq, a}
	})
	return found
}

// askWorker asks one worker until it answers. A call that still runs there is
// answered over the new connection.
func (q *inquirer) askWorker(ctx context.Context, to addressee, calls map[schema.CallID]lostCall) {
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
		wait := time.NewTimer(lostAgain)
		select {
		case <-wait.C:
		case <-ctx.Done():
			wait.Stop()
			return
		}
	}
}

// answer gives a call the end that its worker remembers, or that of one that did not
// arrive there, and says whether the call still waited for it.
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
	case outcome.State == OutcomeForgotten && c.to.brief: // nobody else can tell, however long it waits
		outcome = &Outcome{State: OutcomeEnded, Err: unknown(c.to.call, "worker %s does not remember how it ended, and the connection to NATS was lost meanwhile", worker)}
		return q.answer(worker, c, outcome)
	case outcome.State != OutcomeEnded, outcome.Result != nil && outcome.Err != nil:
		return false // it runs; or its result was too large to be kept
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

// look asks whether a worker that owes answers is there. One that is not may be on its way to
// another server of a cluster, or back to one that started again, and what it owes is asked for
// when it is there: see run.
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
	now := time.Now().UnixNano()
	if first := w.missed.CompareAndSwap(0, now); !r.client.Settled() && (first || now-w.missed.Load() < int64(roamGrace)) {
		return
	}
	r.client.Lost(id)
}
