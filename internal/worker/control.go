package worker

import (
	"encoding/json"
	"time"

	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

// control answers the fabric's own requests to a worker.
type control struct{ w *Worker }

// ownPrefix begins the methods that are the fabric's own.
const ownPrefix = "callyard/"

// answer answers a request of the fabric's own.
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

// mostAsked bounds one question about calls.
const mostAsked = 10_000

// outcomes answers what became of calls. The answer comes after everything that was
// sent to this worker before the question was taken: calls are noted on the
// subscription that questions come by.
func (c control) outcomes(payload []byte, from bus.ReplyTo) ([]byte, error) {
	w := c.w
	var q bus.OutcomeQuery
	if err := json.Unmarshal(payload, &q); err != nil {
		return nil, schema.Errorf(schema.KindInvalidRequest, "The query about calls cannot be decoded; the version of worker %s may be older than the front door's.", w.id)
	}
	if n := len(q.CallIDs); n == 0 || n > mostAsked || q.Within < 0 {
		return nil, schema.Errorf(schema.KindInvalidRequest, "A query must be about 1 to %d calls, not %d.", mostAsked, n)
	}
	if q.Brief {
		return w.brief.asked(&q, from, time.Now()), nil
	}
	return w.memory.asked(&q, from, time.Now()), nil
}

// leave has the process drain and end.
func (c control) leave() error {
	w := c.w
	if w.o.Leave == nil {
		return schema.Errorf(schema.KindConflict, "Worker %s is part of a process that does more, such as callyard up; stop that process instead.", w.id)
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
