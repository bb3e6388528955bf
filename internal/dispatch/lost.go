package dispatch

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/callyard/callyard/pkg/bus"
)

// lostFor is how long a worker is asked about calls whose replies may be lost, and
// lostAgain how often: it comes back to NATS when it does.
const (
	lostFor   = 30 * time.Second
	lostAgain = 250 * time.Millisecond
)

// askLost asks what became of the durable calls under way each time the connection
// stands again: what NATS held when it died is gone, and nobody sends a reply twice.
// Plain calls are not remembered by workers; they end as they did before.
func (r *Router) askLost(ctx context.Context, again <-chan struct{}) {
	var asking sync.WaitGroup
	defer asking.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case <-again:
		}
		byWorker := make(map[string]map[string]lostCall)
		r.client.Waiting(func(seq uint64, worker string, to bus.Receiver) {
			a, ok := to.(*attempt)
			if !ok || !a.call.Durable || worker == anyWorker {
				return
			}
			if byWorker[worker] == nil {
				byWorker[worker] = make(map[string]lostCall)
			}
			byWorker[worker][a.call.ID] = lostCall{seq, a}
		})
		for worker, calls := range byWorker {
			asking.Go(func() { r.askWorker(ctx, worker, calls) })
		}
	}
}

// lostCall is a call whose reply may be lost.
type lostCall struct {
	seq uint64
	to  *attempt
}

// askWorker asks one worker until it answers. A call that still runs there is
// answered over the new connection.
func (r *Router) askWorker(ctx context.Context, worker string, calls map[string]lostCall) {
	ids := make([]string, 0, len(calls))
	oldest := time.Duration(0)
	for id, c := range calls {
		ids = append(ids, id)
		oldest = max(oldest, time.Since(c.to.sent))
	}
	ctx, cancel := context.WithTimeout(ctx, lostFor)
	defer cancel()
	for {
		fates, err := r.AskWithin(ctx, worker, ids, oldest+lostFor)
		if err == nil {
			n := 0
			for i := range fates {
				if r.answer(worker, calls[fates[i].CallID], &fates[i]) {
					n++
				}
			}
			if n > 0 {
				r.log.Info("replies that were lost with the connection to NATS were asked for", "worker", worker, "calls", n)
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

// answer gives a call the end that its worker remembers, and says whether the call
// still waited for it.
func (r *Router) answer(worker string, c lostCall, fate *Fate) bool {
	f := &bus.ReplyFrame{Seq: c.seq, Worker: worker, Started: true}
	switch {
	case fate.State != FateEnded, fate.Result != nil && fate.Err != nil:
		return false // it runs; or its result was too large to be kept
	case fate.Err != nil:
		text, err := json.Marshal(fate.Err)
		if err != nil {
			return false
		}
		f.Kind, f.Payload = bus.ReplyError, text
	case fate.Result != nil:
		f.Kind, f.Payload, f.ToolError, f.Input, f.Took = bus.ReplyResult, fate.Result.Body, fate.Result.ToolError, fate.Result.InputRequired, fate.Result.Took
	default:
		return false
	}
	return r.client.Answer(f)
}
