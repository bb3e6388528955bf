package quota

import (
	"context"
	"math"
	"time"
)

const (
	// forgetAfter is the idle time after which a subject is removed from memory.
	forgetAfter = 10 * time.Minute
	forgetEvery = time.Minute
	// unlimited is the limit of a value that is only counted.
	unlimited = math.MaxInt32
)

// run renews leases, updates the number of front doors, and removes idle subjects.
func (q *Quota) run(ctx context.Context) {
	tick := time.NewTicker(q.renewEvery)
	defer tick.Stop()
	swept := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		q.count()
		if q.shared != nil {
			q.renewAll(ctx)
		}
		if now := time.Now(); now.Sub(swept) > forgetEvery {
			swept = now
			q.forget(now)
		}
	}
}

func (q *Quota) count() { q.doors.Store(int64(max(q.routers(), 1))) }

func (q *Quota) each(f func(*subject)) {
	visit := func(_, v any) bool {
		f(v.(*subject))
		return true
	}
	q.byPrincipal.Range(visit)
	q.byServer.Range(visit)
	q.cohort.each(f)
}

// renewAll reports the local usage of each limit to Redis, and releases unused slots.
func (q *Quota) renewAll(ctx context.Context) {
	if !q.shared.up() {
		if q.shared.look(ctx); !q.shared.up() {
			return
		}
	}
	var all []*renewal
	q.each(func(s *subject) { all = s.renewals(all) })
	if len(all) == 0 {
		return
	}
	sent := time.Now()
	err := q.shared.renew(ctx, all)
	for _, r := range all {
		r.subject.renewed(r, err == nil, sent)
	}
	if err != nil && ctx.Err() == nil {
		q.shared.failed(err)
	}
}

// renewals appends the renewals of a subject. It blocks other lease requests of the subject until the
// renewal is done, so that the last response is the valid one.
func (s *subject) renewals(all []*renewal) []*renewal {
	l := s.terms()
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.inFlight > 0 && s.slots.active() && s.asking == nil {
		s.asking = make(chan struct{})
		used, want := s.slots.renewal(s.more(), l.inFlight)
		all = append(all, &renewal{subject: s, key: s.key, used: used, want: want, most: l.inFlight})
	}
	if l.queued > 0 && s.backlog.active() {
		n := s.backlog.here
		all = append(all, &renewal{subject: s, key: s.key + ":queued", used: n, want: n, most: unlimited, backlog: true})
	}
	return all
}

// renewed applies the response of a renewal.
func (s *subject) renewed(r *renewal, ok bool, sent time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.backlog {
		if ok {
			s.backlog.others, s.backlog.shown = r.lease.others, r.used > 0
		}
		return
	}
	if ok {
		s.slots.leased(r.lease, r.want, r.most, sent, time.Now(), s.q.shared.ttl)
	}
	close(s.asking)
	s.asking = nil
	if s.member != nil && ok {
		s.member.cohort.free() // wake the waiters, because there may be more slots
	}
	if s.freed != nil && ok {
		close(s.freed) // likewise
		s.freed = nil
	}
}

// releaseAll tells Redis that this front door holds no slots.
func (q *Quota) releaseAll() {
	var all []*renewal
	q.each(func(s *subject) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.slots.held > 0 || s.slots.used > 0 {
			all = append(all, &renewal{subject: s, key: s.key})
		}
		if s.backlog.shown {
			all = append(all, &renewal{subject: s, key: s.key + ":queued"})
		}
	})
	if len(all) == 0 || !q.shared.up() {
		return
	}
	if err := q.shared.renew(context.Background(), all); err != nil {
		q.shared.log.Debug("returning leases failed; they will expire", "error", err)
	}
}

// forget removes idle subjects.
func (q *Quota) forget(now time.Time) {
	q.each(func(s *subject) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.member != nil || now.Sub(s.touched) < forgetAfter || s.slots.used > 0 || s.slots.held > 0 || s.backlog.active() || s.asking != nil {
			return
		}
		s.gone = true
		if s.isServer {
			q.byServer.CompareAndDelete(s.name, s)
		} else {
			q.byPrincipal.CompareAndDelete(s.name, s)
		}
	})
}
