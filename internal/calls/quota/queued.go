package quota

import (
	"math"
	"time"

	"github.com/callyard/callyard/pkg/schema"
)

// backlog counts the single durable calls of one principal that were accepted and have not ended:
// here, and at the other front doors as of the last renewal. It is guarded by subject.mu.
type backlog struct {
	here, others int
	shown        bool // Redis has a nonzero count of this front door
}

func (b *backlog) active() bool { return b.here > 0 || b.shown }

// all returns the number at all front doors. Without Redis, it assumes the same number at each.
func (b *backlog) all(doors int, remote bool) int {
	if remote {
		return b.here + b.others
	}
	return b.here * doors
}

// limited returns the principal and the limit of its queue, or nil if it has none.
func (q *Quota) limited(p *schema.Principal) (s *subject, most int) {
	if q == nil {
		return nil, 0
	}
	if s = q.principal(p); s != nil {
		most = s.terms().queued
	}
	if most == 0 {
		return nil, 0
	}
	return s, most
}

// Queues reports whether the queue of the principal is limited, so that its calls must be counted.
func (q *Quota) Queues(p *schema.Principal) bool {
	s, _ := q.limited(p)
	return s != nil
}

// Space returns the number of further durable calls, held calls and batch lines that the principal
// may queue. lines is the number of its batch lines that wait already. The result is math.MaxInt
// without a limit, and less than 1 if there is no space.
func (q *Quota) Space(p *schema.Principal, lines int) int {
	s, most := q.limited(p)
	if s == nil {
		return math.MaxInt
	}
	held := q.held(p)
	s.mu.Lock()
	defer s.mu.Unlock()
	return most - lines - held - s.backlog.all(int(q.doors.Load()), q.shared.up())
}

// Accept returns an error of KindQuota if n more durable calls or lines of the principal may not be
// accepted. lines is the number of its batch lines that wait already. Accept does not count them.
func (q *Quota) Accept(p *schema.Principal, n, lines int) error {
	space := q.Space(p, lines)
	if space >= n {
		return nil
	}
	_, most := q.limited(p)
	e := schema.Errorf(schema.KindQuota, "You have %d waiting calls (durable calls, held calls and batch lines), and your limit is %d; the request was not accepted. Wait for some of them to end.", most-space, most).RetryableAfter(queuedAgain)
	if n > most {
		e = schema.Errorf(schema.KindQuota, "The request has %d calls, and at most %d of your calls can wait at once; the request was not accepted. Send fewer, or send them as a stream of lines (application/x-ndjson), which is read as space becomes available.", n, most)
	}
	return e
}

// Queued adds n, which may be negative, to the waiting single durable calls of the principal.
func (q *Quota) Queued(p *schema.Principal, n int) {
	s, _ := q.limited(p)
	if n < 0 && q != nil { // release even if the principal no longer has a limit
		if v, ok := q.byPrincipal.Load(p.Name); ok {
			s = v.(*subject)
		}
	}
	for s != nil {
		s.mu.Lock()
		gone := s.gone
		if !gone {
			s.backlog.here = max(s.backlog.here+n, 0)
			s.touched = time.Now()
		}
		s.mu.Unlock()
		if !gone {
			return
		}
		s, _ = q.limited(p)
	}
}

// Batches returns the maximum number of open batches of the principal, or 0 if no rule limits it.
func (q *Quota) Batches(p *schema.Principal) int {
	if q == nil {
		return 0
	}
	if l := matchPrincipal(q.principals, p); l != nil {
		return l.batches
	}
	return 0
}

// queuedAgain is the Retry-After of a full queue.
const queuedAgain = 2 * time.Second
