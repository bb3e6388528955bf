package worker

import (
	"slices"
	"time"

	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

const (
	// promiseFor is how long a promise is kept. A message can be on its way for as long as a NATS
	// server or a front door is stopped, for example with its machine.
	promiseFor = time.Hour
	// maxPromises limits the promises, and maxLost the lost messages of one call. Without space for
	// another promise, the worker does not report that a call did not start.
	maxPromises = 1 << 17
	maxLost     = 64
)

// promise is given with the answer that a call did not start, because the router then sends it
// again: the worker refuses the messages with the call that may still arrive.
type promise struct {
	id   schema.CallID
	only bus.ReplyTo // the router that may send the call
	lost []uint64    // numbers of its messages that did not arrive
	made time.Time
}

// promises holds the promises of a memory, whose lock guards it. They outlast the remembered outcomes:
// a call that was sent again may have ended and been forgotten when the first message arrives.
type promises struct {
	calls map[schema.CallID]*promise
	order []*promise // oldest first
}

// give promises to refuse the call from all routers but one, and the message with the number seq if it is
// not 0. It returns false if there is no space for the promise.
func (p *promises) give(id schema.CallID, only bus.ReplyTo, seq uint64, now time.Time) bool {
	one := p.calls[id]
	if one == nil {
		if len(p.calls) >= maxPromises {
			return false
		}
		if p.calls == nil {
			p.calls = make(map[schema.CallID]*promise)
		}
		one = &promise{id: id, made: now}
		p.calls[id], p.order = one, append(p.order, one)
	}
	if seq != 0 && !slices.Contains(one.lost, seq) {
		if len(one.lost) >= maxLost {
			return false
		}
		one.lost = append(one.lost, seq)
	}
	one.only = only
	return true
}

// trim forgets promises that are too old.
func (p *promises) trim(now time.Time) {
	for len(p.order) > 0 && now.Sub(p.order[0].made) > promiseFor {
		delete(p.calls, p.order[0].id)
		p.order[0], p.order = nil, p.order[1:]
	}
}
