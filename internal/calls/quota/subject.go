package quota

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/callyard/callyard/internal/authn/scope"
	"github.com/callyard/callyard/pkg/schema"
)

// subject is a principal, a server or a tenant with what it uses of its limits here.
type subject struct {
	q        *Quota
	isServer bool
	member   *member // nil: it is no tenant
	name     string
	key      string   // in Redis
	groups   []string // as the principal first came; only a shortcut
	limits   atomic.Pointer[limits]
	own      atomic.Pointer[scope.Limits] // of its key, that are part of limits; nil: none

	mu      sync.Mutex
	gone    bool // forgotten, because nothing was asked for long: look it up again
	touched time.Time
	slots   slots
	bucket  bucket
	backlog backlog
	asking  chan struct{} // closed when what is asked of Redis at the moment is there
	freed   chan struct{} // closed when a slot is given back; nil: nobody waits
}

func newSubject(q *Quota, isServer bool, name string, l *limits) *subject {
	s := &subject{q: q, isServer: isServer, name: name, key: "p:" + name, touched: time.Now()}
	if isServer {
		s.key = "s:" + name
	}
	s.limits.Store(l)
	return s
}

// terms are the limits of the moment; nil: none.
func (s *subject) terms() *limits { return s.limits.Load() }

// verdict is what came of an attempt to take room.
type verdict struct {
	ok, gone bool
	// rate says that the rate refuses, otherwise it is the calls at once.
	rate bool
	// wait is the time until a retry: exact for a rate, a guess otherwise.
	wait time.Duration
	// lent says that the tenant has calls of its own left that others have borrowed.
	lent bool
	// freed is closed when a slot was given back here.
	freed <-chan struct{}
}

// try takes room for one call. signal asks for verdict.freed. It asks Redis where
// what is leased here does not do, and waits for that, not longer than askFor.
func (s *subject) try(ctx context.Context, c class, signal bool) verdict {
	for {
		s.mu.Lock()
		if s.gone {
			s.mu.Unlock()
			return verdict{gone: true}
		}
		var freed <-chan struct{}
		if signal && s.member != nil {
			freed = s.member.cohort.wake()
		}
		v, need := s.takeLocked(time.Now(), c)
		if need == nothing {
			if v.freed = freed; signal && s.member == nil && !v.ok && !v.rate {
				if s.freed == nil {
					s.freed = make(chan struct{})
				}
				v.freed = s.freed
			}
			s.mu.Unlock()
			return v
		}
		if other := s.asking; other != nil {
			s.mu.Unlock()
			select {
			case <-other:
				continue
			case <-ctx.Done():
				return verdict{wait: guess}
			}
		}
		s.asking = make(chan struct{})
		s.mu.Unlock()
		s.ask(need, c)
	}
}

// need is what has to be asked of Redis.
type need int

const (
	nothing need = iota
	aLease
	tokens
)

// guess is when a slot may be free again, for callers.
const guess = time.Second

// takeLocked takes room from what there is here, or says what to ask for.
func (s *subject) takeLocked(now time.Time, c class) (verdict, need) {
	l := s.terms()
	if l == nil {
		l = &limits{}
	}
	s.touched = now
	remote, doors := s.q.shared.up(), int(s.q.doors.Load())
	if s.member != nil {
		return s.member.takeLocked(now, c, doors, remote)
	}
	if l.inFlight > 0 {
		switch ok, ask := s.slots.look(now, c, l.inFlight, doors, remote); {
		case ask:
			return verdict{}, aLease
		case !ok:
			return verdict{wait: guess}, nothing
		}
	}
	if l.interval > 0 {
		wait, ask := s.bucket.take(now, c, l, doors, remote)
		switch {
		case ask:
			return verdict{}, tokens
		case wait > 0:
			return verdict{rate: true, wait: wait}, nothing
		}
	}
	s.slots.take()
	return verdict{ok: true}, nothing
}

// ask asks Redis, and wakes who waits for the answer.
func (s *subject) ask(n need, c class) {
	l := s.terms()
	if l == nil {
		l = &limits{}
	}
	switch n {
	case aLease:
		s.mu.Lock()
		used, want, most := s.slots.used, s.slots.want(1, l.inFlight), l.inFlight
		s.mu.Unlock()
		if c == bulk {
			most -= reserved(most)
		}
		sent := time.Now()
		var got lease
		var err error
		if s.member != nil {
			most = l.inFlight
			got, err = s.q.shared.leasePart(s.member, used, want, c)
		} else {
			got, err = s.q.shared.lease(s.key, used, want, most)
		}
		s.mu.Lock()
		if err == nil {
			s.slots.leased(got, want, most, sent, time.Now(), s.q.shared.ttl)
		}
	case tokens:
		burst, count := chunk(c, l)
		n, wait, err := s.q.shared.tokens(s.key, l.interval, burst, count)
		s.mu.Lock()
		if err == nil {
			s.bucket.drawn(time.Now(), c, n, wait)
		}
	}
	close(s.asking)
	s.asking = nil
	s.mu.Unlock()
}

// leave gives the slot of a call back.
func (s *subject) leave() {
	s.mu.Lock()
	s.slots.used--
	if s.member != nil {
		s.member.left()
	}
	if s.freed != nil {
		close(s.freed)
		s.freed = nil
	}
	s.mu.Unlock()
}

// undo takes an attempt back as if it had not been made.
func (s *subject) undo(c class) {
	if l := s.terms(); l != nil && l.interval > 0 {
		s.mu.Lock()
		s.bucket.refund(c, l, int(s.q.doors.Load()), s.q.shared.up())
		s.mu.Unlock()
	}
	s.leave()
}

// refusal is the error for callers.
func (s *subject) refusal(v verdict) error {
	l := s.terms()
	if l == nil {
		l = &limits{}
	}
	var e *schema.Error
	switch {
	case s.member != nil:
		e = s.member.refusal(v)
	case s.isServer && v.rate:
		e = schema.Errorf(schema.KindUnavailable, "Server %q accepts %s calls per second here, and this limit is reached; the call did not start. Try again later.", s.name, perSecond(l.rate))
	case s.isServer:
		e = schema.Errorf(schema.KindUnavailable, "Server %q accepts %d concurrent calls here, and this limit is reached; the call did not start. Try again later.", s.name, l.inFlight)
	case v.rate:
		e = schema.Errorf(schema.KindQuota, "Your limit is %s calls per second with bursts of %d, and it is reached; the call did not start. Wait as long as Retry-After says.", perSecond(l.rate), l.burst)
	default:
		e = schema.Errorf(schema.KindQuota, "You have %d running calls, which is your limit; the call did not start. Wait for some of them to end.", l.inFlight)
	}
	e.Retryable, e.RetryAfter = true, max(v.wait, time.Millisecond)
	return e
}

func perSecond(rate float64) string { return strconv.FormatFloat(rate, 'g', 4, 64) }
