package dispatch

import (
	"context"
	"encoding/json"
	"time"

	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

// Outcome is what a worker says became of a call that was sent to it with
// [schema.Call.Durable].
type Outcome = bus.Outcome

// States of a [Outcome]. Only OutcomeNever proves that the call did not start.
const (
	OutcomeNever     = bus.OutcomeNever
	OutcomeRunning   = bus.OutcomeRunning
	OutcomeEnded     = bus.OutcomeEnded
	OutcomeForgotten = bus.OutcomeForgotten
)

const (
	// askedAtOnce is how many calls one message asks about.
	askedAtOnce = 4096
	// askTimeout bounds the answer to one message.
	askTimeout = 10 * time.Second
)

// Ask asks the worker what became of durable calls; see [Router.AskWithin]. As
// nothing is said of when they were sent, a worker that has already forgotten
// calls proves nothing about those that it does not know.
func (r *Router) Ask(ctx context.Context, worker schema.WorkerID, callIDs []schema.CallID) ([]Outcome, error) {
	return r.AskWithin(ctx, worker, callIDs, 0)
}

// AskWithin asks the worker what became of durable calls that were sent to it at
// most so long ago, by whomever. within comes from the intents of the calls, with
// whatever the clocks of two machines may differ added; 0 says that it is not
// known. There is one outcome for each id, in their order.
//
// [OutcomeNever] proves that the call did not start at this worker, and from now on
// the worker refuses it from every other router: a message that is still on its
// way changes nothing. Workers remember what they ran for about two minutes.
//
// A worker id is one start of a worker, so no other answers for it. The error is
// a *schema.Error; [schema.KindUnavailable] says that the worker is not there, and
// proves nothing about the calls.
func (r *Router) AskWithin(ctx context.Context, worker schema.WorkerID, callIDs []schema.CallID, within time.Duration) ([]Outcome, error) {
	return r.askAll(ctx, worker, &bus.OutcomeQuery{CallIDs: callIDs, Within: within})
}

// askAll asks a query of any length.
func (r *Router) askAll(ctx context.Context, worker schema.WorkerID, q *bus.OutcomeQuery) ([]Outcome, error) {
	outcomes := make([]Outcome, 0, len(q.CallIDs))
	for at := 0; at < len(q.CallIDs); at += askedAtOnce {
		part := *q
		end := min(len(q.CallIDs), at+askedAtOnce)
		if part.CallIDs = q.CallIDs[at:end]; len(q.Seqs) > 0 {
			part.Seqs = q.Seqs[at:end]
		}
		if err := r.ask(ctx, worker, &part, &outcomes); err != nil {
			return nil, err
		}
	}
	return outcomes, nil
}

func (r *Router) ask(ctx context.Context, worker schema.WorkerID, q *bus.OutcomeQuery, outcomes *[]Outcome) error {
	callIDs := q.CallIDs
	query, err := json.Marshal(q)
	if err != nil {
		return schema.Errorf(schema.KindInternal, "Worker %s could not be asked about calls: %w", worker, err)
	}
	body, err := r.Request(ctx, worker, bus.MethodOutcomes, "", query, askTimeout)
	if err != nil {
		return err
	}
	asked := 0
	same := true
	err = bus.ReadOutcomes(body, func(f Outcome) {
		if asked++; asked > len(callIDs) || f.CallID != callIDs[asked-1] {
			same = false
			return
		}
		*outcomes = append(*outcomes, f)
	})
	if err != nil || !same || asked != len(callIDs) {
		return schema.Errorf(schema.KindInternal, "Worker %s returned an answer about calls that cannot be decoded; its version may differ from the front door's.", worker)
	}
	return nil
}
