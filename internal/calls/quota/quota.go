package quota

import (
	"cmp"
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

// Options configures [Open]. Log is required.
type Options struct {
	Rules settings.Limits
	// InFlight is the in_flight limit of principals whose rule sets none, or that match no rule.
	// 0 means no limit.
	InFlight int
	// Tenants holds the limits of tenants. A tenant that is not in it, or has neither nominal nor
	// borrow, has none.
	Tenants map[schema.TenantID]settings.TenantLimits
	// Own returns the limits of a principal's key. They are combined with those of the rules; of
	// each, the tighter one applies. If nil, keys have no limits.
	Own func(*schema.Principal) scope.Limits
	// Redis shares the limits between front doors. If nil, each enforces its share. It must stay
	// open until Close has returned.
	Redis redis.UniversalClient
	// Door is the id of this front door.
	Door string
	// Routers returns the number of live front doors, including this one. If nil, it is one.
	Routers func() int
	// Held returns the number of held calls of the principal that are not part of batches. They
	// count as queued. If nil, there are none.
	Held func(*schema.Principal) int
	// Renew is the renewal interval of leases (default 500 ms). Leases expire after six
	// intervals.
	Renew time.Duration
	Log   *slog.Logger

	// lifetime of a lease and timeout of a request to Redis, if other than the defaults. Tests set
	// them, because the defaults expire on a machine that stands still for a moment.
	lifetime, timeout time.Duration
}

// Quota enforces limits of callers, tenants and servers. A nil *Quota has none. It is safe for
// concurrent use.
type Quota struct {
	principals, servers []rule
	cohort              *cohort // nil if no tenant has limits
	shared              *shared // nil without Redis
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

// Open returns a quota, or nil if no limit is set. It does not connect to Redis.
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
		q.shared = newShared(o.Redis, o.Door, cmp.Or(o.lifetime, leaseRenewals*q.renewEvery), cmp.Or(o.timeout, redisTimeout), o.Log)
	}
	ctx, stop := context.WithCancel(context.Background())
	q.stop = stop
	q.work.Go(func() { q.run(ctx) })
	return q
}

// Close releases all leases and stops the goroutines of Open. No call may be waiting.
func (q *Quota) Close() {
	if q == nil {
		return
	}
	q.stop()
	q.work.Wait()
	if q.shared != nil {
		q.releaseAll()
	}
}

// class distinguishes calls that a caller waits for from bulk calls.
type class int

const (
	interactive class = iota // a caller waits for the call
	bulk                     // part of a batch, or run from a journal
	classes
)

// Pass holds the slots of one call until Leave. The zero Pass holds none.
type Pass struct{ principal, tenant, server *subject }

func (p *Pass) subjects() [3]*subject { return [3]*subject{p.principal, p.tenant, p.server} }

// Leave releases the slots. It must be called once for each Pass.
func (p Pass) Leave() {
	for _, s := range p.subjects() {
		if s != nil {
			s.leave()
		}
	}
}

// Enter acquires slots for an interactive call of the principal. If its tenant is below its nominal
// limit because others borrowed the slots, Enter waits up to 30 s for one of the borrowed calls to
// end. The error is of KindQuota, with the time after which to retry, or of KindCanceled if ctx ends
// first.
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

// Serve acquires a slot at the server for an interactive call, after the server is known to exist. The
// error is of KindUnavailable.
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

// principal returns the subject of a principal, or nil if it has no limits.
func (q *Quota) principal(p *schema.Principal) *subject {
	own := q.ownOf(p)
	if v, ok := q.byPrincipal.Load(p.Name); ok {
		s := v.(*subject)
		if was := s.own.Load(); slices.Equal(s.groups, p.Groups) && (was == nil && own.None() || was != nil && *was == own) {
			return s
		}
		// The principal may have signed in again with other groups, or its key may have new limits.
		if l := tighter(matchPrincipal(q.principals, p), own); l != s.limits.Load() {
			s.limits.Store(l)
		}
		kept := own // a copy, so that not every call allocates
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

// ownOf returns the limits of a principal's key.
func (q *Quota) ownOf(p *schema.Principal) (own scope.Limits) {
	if q.own != nil {
		own = q.own(p)
	}
	return own
}

// server returns the subject of a server, or nil if it has no limits.
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

// share returns this front door's part of a limit. It is at least 1, so the sum of the parts exceeds
// the limit only if there are more front doors than the limit.
func share(most, doors int) int { return max(1, most/doors) }

// reserved returns the part of a limit that bulk calls must leave to interactive calls.
func reserved(most int) int {
	if most <= 1 {
		return 0
	}
	return max(1, most/16)
}
