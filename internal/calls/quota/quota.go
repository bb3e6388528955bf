package quota

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/callyard/callyard/internal/authn/scope"
	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/pkg/schema"
)

// Options says what limits there are and with whom they are shared. Log is
// required.
type Options struct {
	Rules settings.Limits
	// InFlight is the in_flight of principals whose rule names none, or who match
	// none; 0 sets no limit.
	InFlight int
	// Tenants are the limits of tenants; who is not in it, or has neither nominal nor
	// borrow, has none.
	Tenants map[schema.TenantID]settings.TenantLimits
	// Own returns the limits of the key of a principal, of which with those of the rules the
	// tighter count. nil: keys have none.
	Own func(*schema.Principal) scope.Limits
	// Redis shares the limits over the front doors; nil: each takes its share. It
	// must last until Close has returned.
	Redis redis.UniversalClient
	// Door names this front door among the others.
	Door string
	// Routers is how many front doors are alive, this one included; nil: one.
	Routers func() int
	// Held is how many calls of the principal are held in addition to those of batches; they
	// count as queued. nil: none.
	Held func(*schema.Principal) int
	// Renew is how often leases are renewed (500 ms). They end after six times that.
	Renew time.Duration
	Log   *slog.Logger
}

// Quota holds callers and servers to their limits. A nil *Quota has none. It is
// safe for concurrent use.
type Quota struct {
	principals, servers []rule
	cohort              *cohort // nil: no tenant has limits
	shared              *shared // nil: there is no Redis
	routers             func() int
	held                func(*schema.Principal) int
	own                 func(*schema.Principal) scope.Limits
	doors               atomic.Int64
	renewEvery          time.Duration

	byPrincipal, byServer sync.Map // name → *subject

	linesMu sync.Mutex
	lines   map[lineKey]*line

	stop context.CancelFunc
	work sync.WaitGroup
}

// Open returns the limits, nil where none is set. Nothing is asked of Redis yet.
func Open(o Options) *Quota {
	q := &Quota{principals: principals(&o.Rules, o.InFlight), servers: servers(&o.Rules), routers: o.Routers, held: o.Held, own: o.Own, renewEvery: o.Renew, lines: make(map[lineKey]*line)}
	q.cohort = newCohort(q, o.Tenants)
	set := func(r rule) bool { return !r.limits.none() }
	if !slices.ContainsFunc(q.principals, set) && !slices.ContainsFunc(q.servers, set) && q.own == nil && q.cohort == nil {
		return nil
	}
	if q.renewEvery <= 0 {
		q.renewEvery = 500 * time.Millisecond
	}
	if q.routers == nil {
		q.routers = func() int { return 1 }
	}
	if q.held == nil {
		q.held = func(*schema.Principal) int { return 0 }
	}
	q.count()
	if o.Redis != nil {
		q.shared = newShared(o.Redis, o.Door, leaseRenewals*q.renewEvery, o.Log)
	}
	ctx, stop := context.WithCancel(context.Background())
	q.stop = stop
	q.work.Go(func() { q.run(ctx) })
	return q
}

// Close gives leases back and ends what Open began. Who waits must have left.
func (q *Quota) Close() {
	if q == nil {
		return
	}
	q.stop()
	q.work.Wait()
	if q.shared != nil {
		q.giveBack()
	}
}

// class says who waits for a call.
type class int

const (
	interactive class = iota // somebody waits for this call
	bulk                     // part of a batch, or run from a journal
	classes
)

// Pass is the room that one call takes until it leaves. The zero Pass takes none.
type Pass struct{ principal, tenant, server *subject }

func (p *Pass) subjects() [3]*subject { return [3]*subject{p.principal, p.tenant, p.server} }

// Leave gives the room back. It must be called once for each Pass.
func (p Pass) Leave() {
	for _, s := range p.subjects() {
		if s != nil {
			s.leave()
		}
	}
}

// Enter takes room for a call of the principal's that somebody waits for. Where its tenant
// has calls of its own left that others borrowed, it waits up to 30 s for the end of one of
// these. The error is of KindQuota, with the time after which to retry, or of KindCanceled
// where ctx ended meanwhile.
func (q *Quota) Enter(ctx context.Context, p *schema.Principal) (Pass, error) {
	if q == nil {
		return Pass{}, nil
	}
	pass, refused, v := q.admit(ctx, p, "", interactive, false)
	switch {
	case refused == nil:
		return pass, nil
	case v.lent:
		return q.recall(ctx, p, refused.member)
	}
	return Pass{}, refused.refusal(v)
}

// Serve takes room at the server for a call that somebody waits for, once it is
// known that there is such a server. The error is of KindUnavailable.
func (q *Quota) Serve(ctx context.Context, server schema.ServerID) (Pass, error) {
	if q == nil || len(q.servers) == 0 {
		return Pass{}, nil
	}
	for {
		s := q.server(server)
		if s == nil || !s.terms().perCall() {
			return Pass{}, nil
		}
		v := s.try(ctx, interactive, false)
		switch {
		case v.ok:
			return Pass{server: s}, nil
		case !v.gone:
			return Pass{}, s.refusal(v)
		}
	}
}

// principal returns what is known of a principal, nil where nothing limits it.
func (q *Quota) principal(p *schema.Principal) *subject {
	own := q.ownOf(p)
	if v, ok := q.byPrincipal.Load(p.Name); ok {
		s := v.(*subject)
		if was := s.own.Load(); slices.Equal(s.groups, p.Groups) && (was == nil && own.None() || was != nil && *was == own) {
			return s
		}
		// It signed in again, and is in other groups now, or its key has other limits.
		if l := tighter(matchPrincipal(q.principals, p), own); l != s.terms() {
			s.limits.Store(l)
		}
		kept := own // else every call would take memory for it
		s.own.Store(&kept)
		return s
	}
	l := tighter(matchPrincipal(q.principals, p), own)
	if l == nil {
		return nil
	}
	s := newSubject(q, false, p.Name, l)
	s.groups = slices.Clone(p.Groups)
	if !own.None() {
		kept := own
		s.own.Store(&kept)
	}
	v, _ := q.byPrincipal.LoadOrStore(p.Name, s)
	return v.(*subject)
}

// ownOf returns the limits of the key of a principal.
func (q *Quota) ownOf(p *schema.Principal) (own scope.Limits) {
	if q.own != nil {
		own = q.own(p)
	}
	return own
}

// server returns what is known of a server, nil where nothing limits it.
func (q *Quota) server(id schema.ServerID) *subject {
	if v, ok := q.byServer.Load(id); ok {
		return v.(*subject)
	}
	l := match(q.servers, string(id), nil)
	if l == nil {
		return nil
	}
	v, _ := q.byServer.LoadOrStore(id, newSubject(q, true, string(id), l))
	return v.(*subject)
}

// share is this front door's part of a limit. It is never nothing, and the parts
// are never more than the limit unless there are more front doors than that.
func share(most, doors int) int { return max(1, most/doors) }

// reserved is how much of a limit bulk calls leave alone, so that a call which
// somebody waits for finds room next to them.
func reserved(most int) int {
	if most <= 1 {
		return 0
	}
	return max(1, most/16)
}
