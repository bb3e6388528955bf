package dispatch

import (
	"context"
	"encoding/json"
	"time"

	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

// Outcome is the outcome that a worker reports for a call that was sent to it with
// [schema.Call.Durable].
type Outcome = bus.Outcome

// States of an [Outcome]. Only OutcomeNever proves that the call did not start.
const (
	OutcomeNever     = bus.OutcomeNever
	OutcomeRunning   = bus.OutcomeRunning
	OutcomeEnded     = bus.OutcomeEnded
	OutcomeForgotten = bus.OutcomeForgotten
)

const (
	// askedAtOnce limits the number of calls in one message.
	askedAtOnce = 4096
	// askTimeout limits the wait for the answer to one message.
	askTimeout = 10 * time.Second
)

// Ask asks the worker for the outcomes of durable calls that any router sent to it at most
// within ago. Callers compute within from the intents of the calls and add the possible clock
// difference of two machines; 0 means unknown. It returns one outcome for each id, in their order.
//
// [OutcomeNever] proves that the call did not start at this worker. From then on the worker
// refuses the call from every other router, so a message that is still in flight has no effect.
// Workers remember the calls that they ran for about two minutes.
//
// A worker id identifies one start of a worker, so no other worker answers for it. The error is a
// *schema.Error; [schema.KindUnavailable] means that the worker is not there, and proves nothing
// about the calls.
func (r *Router) Ask(ctx context.Context, worker schema.WorkerID, callIDs []schema.CallID, within time.Duration) ([]Outcome, error) {
	return r.askAll(ctx, worker, &bus.OutcomeQuery{CallIDs: callIDs, Within: within})
}

// askAll sends a query of any length, in parts.
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
