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

// subject is a principal, server or tenant, with its local usage of its limits.
type subject struct {
	q        *Quota
	isServer bool
	member   *member // nil unless it is a tenant
	name     string
	key      string   // key in Redis
	groups   []string // groups at the first call of the principal; only a shortcut
	limits   atomic.Pointer[limits]
	own      atomic.Pointer[scope.Limits] // limits of its key, which are included in limits; nil if none

	mu      sync.Mutex
	gone    bool // removed after idling; look it up again
	touched time.Time
	slots   slots
	bucket  bucket
	backlog backlog
	asking  chan struct{} // closed when the pending request to Redis is done
	freed   chan struct{} // closed when a slot is released; nil if there is no waiter
}

func newSubject(q *Quota, isServer bool, name string, l *limits) *subject {
	s := &subject{q: q, isServer: isServer, name: name, key: "p:" + name, touched: time.Now()}
	if isServer {
		s.key = "s:" + name
	}
	s.limits.Store(l)
	return s
}

// noLimits are the terms of a subject without limits. They are never changed.
var noLimits limits

// terms returns the current limits.
func (s *subject) terms() *limits {
	if l := s.limits.Load(); l != nil {
		return l
	}
	return &noLimits
}

// verdict is the outcome of an attempt to take a slot.
type verdict struct {
	ok, gone bool
	// rate is set if the rate limit refuses the call, else the limit of calls in flight does.
	rate bool
	// wait is the time until a retry: exact for a rate, else a guess.
	wait time.Duration
	// lent is set if the tenant is below its nominal limit, because others have borrowed its slots.
	lent bool
	// freed is closed when a slot is released here.
	freed <-chan struct{}
}

// try takes a slot for one call. signal requests verdict.freed. If the local leases are exhausted, it
// asks Redis and waits for the response, for at most shared.timeout.
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

// redisRequest is the request to send to Redis.
type redisRequest int

const (
	nothing redisRequest = iota
	aLease
	tokens
)

// guess is the estimated time until a slot is free, for callers.
const guess = time.Second

// takeLocked takes a slot from the local leases, or returns the request to send to Redis.
func (s *subject) takeLocked(now time.Time, c class) (verdict, redisRequest) {
	l := s.terms()
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

// ask sends a request to Redis, and wakes the callers that wait for the response.
func (s *subject) ask(n redisRequest, c class) {
	l := s.terms()
	switch n {
	case aLease:
		s.mu.Lock()
		used, want, most := s.slots.used, s.slots.want(s.more(), l.inFlight), l.inFlight
		s.mu.Unlock()
		if c == bulk && s.member == nil { // the script does so for a tenant
			most -= reserved(most)
		}
		sent := time.Now()
		got, err := s.q.shared.lease(s, used, want, most, c)
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

// more returns the number of slots to request for the calls that wait. A tenant asks for all of them at
// once. Otherwise its claim would lapse when the first one gets its slot, until the second one asks.
func (s *subject) more() int {
	if s.member == nil {
		return 1
	}
	return max(1, int(s.member.waiting.Load()))
}

// leave releases the slot of a call.
func (s *subject) leave() {
	s.mu.Lock()
	s.slots.used--
	if s.member != nil {
		s.member.releaseSlot()
	}
	if s.freed != nil {
		close(s.freed)
		s.freed = nil
	}
	s.mu.Unlock()
}

// undo reverts a successful try, including its rate token.
func (s *subject) undo(c class) {
	if l := s.terms(); l.interval > 0 {
		s.mu.Lock()
		s.bucket.refund(c, l, int(s.q.doors.Load()), s.q.shared.up())
		s.mu.Unlock()
	}
	s.leave()
}

// refusal returns the error for callers.
func (s *subject) refusal(v verdict) error {
	l := s.terms()
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
