package quota

import (
	"math"
	"time"

	"github.com/callyard/callyard/pkg/schema"
)

// backlog counts the single durable calls of one principal that were accepted and
// have not ended: here, and at the others as of the last renewal. It is guarded
// by its subject.
type backlog struct {
	here, others int
	shown        bool // Redis knows of some
}

func (b *backlog) active() bool { return b.here > 0 || b.shown }

// all is the number at all front doors; without Redis the others are taken to have as many
// as this one.
func (b *backlog) all(doors int, remote bool) int {
	if remote {
		return b.here + b.others
	}
	return b.here * doors
}

// limited returns the principal where how much of it may wait is limited.
func (q *Quota) limited(p *schema.Principal) *subject {
	if q == nil {
		return nil
	}
	s := q.principal(p)
	if s == nil {
		return nil
	}
	if l := s.terms(); l == nil || l.queued == 0 {
		return nil
	}
	return s
}

// Queues says that how much of the principal's may wait is limited, so that it has
// to be counted.
func (q *Quota) Queues(p *schema.Principal) bool { return q.limited(p) != nil }

// Space is how many more durable and held calls and lines of the principal's may wait, where
// that many lines of batches do already: at most math.MaxInt, and less than 1 where
// none may.
func (q *Quota) Space(p *schema.Principal, lines int) int {
	s := q.limited(p)
	if s == nil {
		return math.MaxInt
	}
	l := s.terms()
	if l == nil || l.queued == 0 {
		return math.MaxInt
	}
	held := q.held(p)
	s.mu.Lock()
	defer s.mu.Unlock()
	return l.queued - lines - held - s.backlog.all(int(q.doors.Load()), q.shared.up())
}

// Accept says whether n more durable calls or lines of the principal's may be
// accepted, where that many lines of batches wait already. It counts nothing. The
// error is of KindQuota.
func (q *Quota) Accept(p *schema.Principal, n, lines int) error {
	space := q.Space(p, lines)
	if space >= n {
		return nil
	}
	most := 0
	if l := q.principal(p).terms(); l != nil {
		most = l.queued
	}
	e := schema.Errorf(schema.KindQuota, "You have %d waiting calls (durable calls, held calls and batch lines), and your limit is %d; the request was not accepted. Wait for some of them to end.", most-space, most).RetryableAfter(queuedAgain)
	if n > most {
		e = schema.Errorf(schema.KindQuota, "The request has %d calls, and at most %d of your calls can wait at once; the request was not accepted. Send fewer, or send them as a stream of lines (application/x-ndjson), which is read as space becomes available.", n, most)
	}
	return e
}

// Queued notes that that many more single durable calls of the principal's wait, or
// fewer.
func (q *Quota) Queued(p *schema.Principal, n int) {
	s := q.limited(p)
	if n < 0 && q != nil { // whose limits have changed since gives back what it took
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
		s = q.limited(p)
	}
}

// Batches is how many batches the principal may have open by its rule, 0 where no
// rule says so.
func (q *Quota) Batches(p *schema.Principal) int {
	if q == nil {
		return 0
	}
	if l := matchPrincipal(q.principals, p); l != nil {
		return l.batches
	}
	return 0
}

// queuedAgain is when to look again whether less waits.
const queuedAgain = 2 * time.Second
