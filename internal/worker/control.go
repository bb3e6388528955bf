package worker

import (
	"encoding/json"
	"time"

	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

// control answers requests of the fabric itself to a worker.
type control struct{ w *Worker }

// ownPrefix is the prefix of the fabric's own methods.
const ownPrefix = "callyard/"

// answer answers a request of the fabric itself.
func (c control) answer(f *bus.CallFrame, to bus.ReplyTo) {
	body, err := c.do(f, to)
	if err != nil {
		c.w.listener.Error(to, f.Seq, schema.AsError(err).WithCall(f.ID), false, 0)
		return
	}
	c.w.listener.Result(to, f.Seq, &schema.Result{Body: body})
}

func (c control) do(f *bus.CallFrame, to bus.ReplyTo) ([]byte, error) {
	switch f.Method {
	case bus.MethodOutcomes:
		return c.outcomes(f.Payload, to)
	case bus.MethodDescribe:
		return c.describe(f.Server)
	case bus.MethodStart:
		return nil, c.w.servers.add(f.Server, f.Payload)
	case bus.MethodRestart:
		return nil, c.w.servers.restart(f.Server)
	case bus.MethodStop:
		return nil, c.w.servers.remove(f.Server)
	case bus.MethodDrain:
		return nil, c.leave()
	case bus.MethodOpenLease, bus.MethodCloseLease, bus.MethodLeaseDigest, bus.MethodLeaseSnapshot:
		return c.lease(f)
	}
	return nil, schema.Errorf(schema.KindInvalidRequest, "Worker %s does not support %q; its version may be older than the front door's.", c.w.id, f.Method)
}

// maxQueriedCalls limits the calls in one outcome query.
const maxQueriedCalls = 10_000

// outcomes returns the outcomes of calls. The answer covers everything that was sent to this worker
// before the query, because calls and queries arrive on the same subscription.
func (c control) outcomes(payload []byte, from bus.ReplyTo) ([]byte, error) {
	w := c.w
	var q bus.OutcomeQuery
	if err := json.Unmarshal(payload, &q); err != nil {
		return nil, schema.Errorf(schema.KindInvalidRequest, "The query about calls cannot be decoded; the version of worker %s may be older than the front door's.", w.id)
	}
	if n := len(q.CallIDs); n == 0 || n > maxQueriedCalls || q.Within < 0 {
		return nil, schema.Errorf(schema.KindInvalidRequest, "A query must be about 1 to %d calls, not %d.", maxQueriedCalls, n)
	}
	if q.Brief {
		return w.brief.asked(&q, from, time.Now()), nil
	}
	return w.memory.asked(&q, from, time.Now()), nil
}

// leave makes the process drain and exit.
func (c control) leave() error {
	w := c.w
	if w.o.Leave == nil {
		return schema.Errorf(schema.KindConflict, "Worker %s shares its process with other parts of Callyard, as in callyard up, and cannot be drained alone; stop the process instead.", w.id)
	}
	w.mu.Lock()
	draining := w.draining
	w.mu.Unlock()
	if !draining {
		w.log.Info("an operator drains this worker")
		w.o.Leave()
	}
	return nil
}

func (c control) describe(server schema.ServerID) ([]byte, error) {
	h := c.w.servers.find(server)
	if h == nil {
		return nil, schema.Errorf(schema.KindNotFound, "Worker %s does not run server %q.", c.w.id, server)
	}
	defs, digest := h.definitions()
	return (&bus.Description{Digest: digest, Definitions: defs}).Encode(), nil
}
