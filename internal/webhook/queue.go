package webhook

import (
	"cmp"
	"container/heap"
	"math"
	"time"

	"github.com/callyard/callyard/pkg/schema"
)

// limits are the limits of the outbox.
type limits struct {
	underWay, underWayEach int   // attempts of this process: in total and per receiver
	waiting, waitingEach   int   // deliveries of all processes
	bytes, bytesEach       int64 // total size of their bodies
}

// queue is the view that one process has of all deliveries, in the order in which it takes them.
// It has no clock and no lock.
type queue struct {
	limits    limits
	rows      map[string]*row
	receivers map[string]*receiver
	ready     ordered[*receiver] // receivers that may be sent to, by due time
	underWay  int
	waiting   total
	tenants   map[schema.TenantID]total // waiting, without the default tenant; no zero entries
	dead      total
}

// row is one delivery.
type row struct {
	id       string
	state    state
	revision uint64
	at       time.Time // time from which this process may make the next attempt
	busy     bool      // this process is making an attempt
	gone     bool      // it has ended, but the watch has not reported that yet
	place    int
}

// receiver is one host and port.
type receiver struct {
	name     string
	rows     ordered[*row] // neither busy nor dead, by due time
	underWay int
	waiting  total
	tenants  map[schema.TenantID]total // waiting, by tenant; no zero entries
	paused   time.Time
	place    int
}

type total struct {
	n     int
	bytes int64
}

func (t *total) add(n int, size int) { t.n += n; t.bytes += int64(n) * int64(size) }

func newQueue(l limits) *queue {
	return &queue{limits: l, rows: map[string]*row{}, receivers: map[string]*receiver{}, tenants: map[schema.TenantID]total{}}
}

// wait adds n deliveries of a tenant, which may be negative, to the waiting ones of a receiver.
func (q *queue) wait(to *receiver, tenant schema.TenantID, n, size int) {
	q.waiting.add(n, size)
	to.waiting.add(n, size)
	put := func(of map[schema.TenantID]total) {
		t := of[tenant]
		if t.add(n, size); t.n == 0 {
			delete(of, tenant)
		} else {
			of[tenant] = t
		}
	}
	if put(to.tenants); tenant != "" {
		put(q.tenants)
	}
}

// space returns nil if a delivery of that size may be added for a receiver. The deliveries of other
// tenants to the same receiver do not count, and no tenant other than the default one gets more than
// three quarters of the outbox.
func (q *queue) space(name string, tenant schema.TenantID, size int) *schema.Error {
	tenant = tenant.Stored()
	var each total
	if r := q.receivers[name]; r != nil {
		each = r.tenants[tenant]
	}
	l, own := q.limits, q.tenants[tenant]
	switch {
	case each.n >= l.waitingEach || each.bytes+int64(size) > l.bytesEach:
		return &schema.Error{Kind: schema.KindQuota, Retryable: true, RetryAfter: time.Minute,
			Detail: "Too many webhooks wait for this receiver, which does not accept them: repair the receiver, or use another callback_url."}
	case tenant != "" && (own.n >= l.waiting-l.waiting/4 || own.bytes+int64(size) > l.bytes-l.bytes/4):
		return &schema.Error{Kind: schema.KindQuota, Retryable: true, RetryAfter: time.Minute,
			Detail: "Too many webhooks of your tenant wait for their receivers, which do not accept them: repair the receivers, or omit callback_url."}
	case q.waiting.n >= l.waiting || q.waiting.bytes+int64(size) > l.bytes:
		return &schema.Error{Kind: schema.KindUnavailable, Retryable: true, RetryAfter: time.Minute,
			Detail: "Too many webhooks wait for their receivers: try again later, or omit callback_url."}
	}
	return nil
}

// reserve adds n deliveries to the counts before their rows exist. n may be negative.
func (q *queue) reserve(name string, tenant schema.TenantID, n, size int) {
	q.wait(q.receiver(name), tenant.Stored(), n, size)
	q.forget(name)
}

// put applies the stored state of a delivery. It ignores a state older than the known one.
func (q *queue) put(id string, s state, revision uint64, at time.Time) {
	r := q.rows[id]
	switch {
	case r == nil:
		r = &row{id: id, place: -1}
		q.rows[id] = r
	case revision <= r.revision:
		return
	default:
		q.count(r, -1)
	}
	r.state, r.revision, r.at, r.gone = s, revision, at, false
	q.count(r, 1)
	q.forget(s.Receiver)
}

// drop removes a delivery that has ended. The row stays as a marker until the watch reports the
// end, so that an older update does not restore it.
func (q *queue) drop(id string, revision uint64, watched bool) {
	r := q.rows[id]
	if r == nil || revision < r.revision {
		return
	}
	if !r.gone {
		q.count(r, -1)
	}
	r.gone, r.revision = true, revision
	q.forget(r.state.Receiver)
	if watched {
		delete(q.rows, id)
	}
}

// count adds a row to the totals and to the order of its receiver, or removes it.
func (q *queue) count(r *row, n int) {
	if r.gone {
		return
	}
	if r.state.Dead != "" {
		q.dead.add(n, r.state.Size)
		return
	}
	to := q.receiver(r.state.Receiver)
	q.wait(to, r.state.Tenant.Stored(), n, r.state.Size)
	if r.place >= 0 {
		heap.Remove(&to.rows, r.place)
	}
	if n > 0 && !r.busy {
		heap.Push(&to.rows, r)
	}
	q.settle(to)
}

func (q *queue) receiver(name string) *receiver {
	r := q.receivers[name]
	if r == nil {
		r = &receiver{name: name, tenants: map[schema.TenantID]total{}, place: -1}
		q.receivers[name] = r
	}
	return r
}

// settle moves a receiver to its place in the order after a change.
func (q *queue) settle(r *receiver) {
	sendable := len(r.rows) > 0 && r.underWay < q.limits.underWayEach
	switch {
	case sendable && r.place < 0:
		heap.Push(&q.ready, r)
	case sendable:
		heap.Fix(&q.ready, r.place)
	case r.place >= 0:
		heap.Remove(&q.ready, r.place)
	}
}

// forget drops the state of a receiver without deliveries.
func (q *queue) forget(name string) {
	if r := q.receivers[name]; r != nil && r.underWay == 0 && r.waiting.n == 0 {
		delete(q.receivers, name)
	}
}

// forever is a wait that only an event ends.
const forever = time.Duration(math.MaxInt64)

// next takes the delivery that has been due longest and marks it busy. If none is due, it returns
// the time until one is.
func (q *queue) next(now time.Time) (*row, time.Duration) {
	if q.underWay >= q.limits.underWay || len(q.ready) == 0 {
		return nil, forever
	}
	to := q.ready[0]
	if at := to.when(); at.After(now) {
		return nil, at.Sub(now)
	}
	r := to.rows[0]
	heap.Pop(&to.rows)
	r.busy = true
	q.underWay++
	to.underWay++
	q.settle(to)
	return r, 0
}

// done ends the attempt that next started.
func (q *queue) done(r *row, pauseUntil time.Time) {
	r.busy = false
	q.underWay--
	to := q.receiver(r.state.Receiver)
	to.underWay--
	if pauseUntil.After(to.paused) {
		to.paused = pauseUntil
	}
	if r.place < 0 && !r.gone && r.state.Dead == "" && q.rows[r.id] == r {
		heap.Push(&to.rows, r)
	}
	q.settle(to)
	q.forget(to.name)
}

// oldestDead returns the delivery that was given up first.
func (q *queue) oldestDead() *row {
	var oldest *row
	for _, r := range q.rows {
		if r.state.Dead != "" && !r.gone && (oldest == nil || r.state.Ended.Before(oldest.state.Ended)) {
			oldest = r
		}
	}
	return oldest
}

func (r *receiver) when() time.Time {
	if at := r.rows[0].at; at.After(r.paused) {
		return at
	}
	return r.paused
}

func (r *receiver) put(place int)           { r.place = place }                  //nolint:unused // ordered calls it
func (r *receiver) before(o *receiver) bool { return r.when().Before(o.when()) } //nolint:unused // as above

func (r *row) put(place int) { r.place = place } //nolint:unused // as above
func (r *row) before(o *row) bool { //nolint:unused // as above
	return cmp.Or(r.at.Compare(o.at), cmp.Compare(r.revision, o.revision)) < 0
}

// ordered is a heap whose elements know their index; -1 means not in the heap.
type ordered[T interface {
	before(o T) bool
	put(place int)
}] []T

func (o ordered[T]) Len() int           { return len(o) }
func (o ordered[T]) Less(i, j int) bool { return o[i].before(o[j]) }

// Swap also updates both indices.
func (o ordered[T]) Swap(i, j int) {
	o[i], o[j] = o[j], o[i]
	o[i].put(i)
	o[j].put(j)
}

// Push implements [heap.Interface].
func (o *ordered[T]) Push(x any) {
	v := x.(T) // heap passes back the value that it was given
	v.put(len(*o))
	*o = append(*o, v)
}

// Pop implements [heap.Interface].
func (o *ordered[T]) Pop() any {
	old := *o
	v := old[len(old)-1]
	var zero T
	old[len(old)-1] = zero
	*o = old[:len(old)-1]
	v.put(-1)
	return v
}
