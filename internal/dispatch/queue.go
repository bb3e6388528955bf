package dispatch

import (
	"time"

	"github.com/callyard/callyard/pkg/schema"
)

// kind is one of the two classes of waiting calls.
type kind int

const (
	interactive kind = iota // a caller waits for this call
	bulk                    // part of a batch, or run from the ledger
	kinds
)

func kindOf(call *schema.Call) kind {
	if call.Bulk {
		return bulk
	}
	return interactive
}

// bulkTurn is the number of slots of which one goes to a bulk call first, even if interactive
// calls wait, so that bulk calls never starve.
const bulkTurn = 16

// queue holds the calls that wait for a slot of one server. It is protected by the route's lock.
// Interactive calls are served before bulk calls. Within each kind the principals take turns, so
// no principal waits for the whole backlog of another.
type queue struct {
	kinds [kinds]class
	ready int // asynchronous calls that wait for a slot of their worker, which are not in kinds
	owed  int // slots given to interactive calls while bulk calls waited
}

// waiter is a call that waits for a slot.
type waiter struct {
	got   chan *lane // buffered, so that sending never blocks
	async *AsyncCall // set if no goroutine waits for got
	avoid map[schema.WorkerID]bool
	since time.Time // set for interactive calls
	kind  kind
	line  *line // nil if in picky, or no longer waiting
	in    *chain
	next  *waiter
	prev  *waiter
}

// chain is a list of waiters.
type chain struct {
	first, last *waiter
	n           int
}

func (c *chain) push(w *waiter) {
	w.in, w.prev, w.next = c, c.last, nil
	if c.last == nil {
		c.first = w
	} else {
		c.last.next = w
	}
	c.last = w
	c.n++
}

func (c *chain) remove(w *waiter) {
	if w.prev == nil {
		c.first = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		c.last = w.prev
	} else {
		w.next.prev = w.prev
	}
	w.in, w.prev, w.next = nil, nil, nil
	c.n--
}

// empty reports whether no call waits.
func (q *queue) empty() bool { return q.len() == 0 }

func (q *queue) len() int { return q.kinds[interactive].n + q.kinds[bulk].n + q.ready }

// oldest returns the time since which the first interactive call has waited, or the zero time if
// none waits.
func (q *queue) oldest() (since time.Time) {
	c := &q.kinds[interactive]
	first := func(w *waiter) {
		if w != nil && (since.IsZero() || w.since.Before(since)) {
			since = w.since
		}
	}
	first(c.picky.first)
	for _, l := range c.lines {
		first(l.first)
	}
	return since
}

// order returns the kinds in the order in which they are served now.
func (q *queue) order() [kinds]kind {
	if q.owed >= bulkTurn-1 {
		return [kinds]kind{bulk, interactive}
	}
	return [kinds]kind{interactive, bulk}
}

func keyOf(call *schema.Call) lineKey {
	k := lineKey{principal: call.Principal.Name}
	if call.Bulk {
		k.priority = max(-mostPriority, min(call.Priority, mostPriority))
	}
	return k
}

// push adds a waiting call. A call that avoids workers waits in a separate list, so that it and
// the other calls of its principal do not delay each other.
func (q *queue) push(call *schema.Call, w *waiter, by *weights) {
	w.kind = kindOf(call)
	c := &q.kinds[w.kind]
	if len(w.avoid) > 0 {
		c.n++
		c.picky.push(w)
		return
	}
	c.push(w, by.key(call), by)
}

// remove takes the waiter out of the queue.
func (q *queue) remove(w *waiter) {
	q.kinds[w.kind].remove(w)
	q.settle()
}

// settle resets the slots owed to bulk calls when none waits.
func (q *queue) settle() {
	if q.kinds[bulk].n+q.ready == 0 {
		q.owed = 0
	}
}

// served removes a waiter that got a slot or a place.
func (q *queue) served(w *waiter) {
	if w.async != nil {
		// It got a place, and no slot yet.
	} else if w.kind == bulk {
		q.owed = 0
	} else if q.owed < bulkTurn {
		q.owed++
	}
	q.kinds[w.kind].served(w)
	q.settle()
}

// expected returns the estimated time of the given number of calls on the given number of slots.
func expected(turns, slots int, pace average) time.Duration {
	if slots == 0 {
		return 0
	}
	return time.Duration(float64(pace) * float64(turns) / float64(slots))
}
