package quota

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/pkg/schema"
)

// cohort limits the calls in flight of all tenants with limits to the sum of their nominal limits. A
// tenant may use its nominal limit, and may borrow what others leave unused of theirs. Tenants
// without limits are not part of it.
//
// A tenant that finds no slot claims its nominal limit: until it gets all slots that it asks for,
// nothing of its limit is lent. So it has its slots as soon as the borrowed calls in flight have
// ended. While several tenants want to borrow more, each borrows at most its share by weight.
//
// With Redis, the script of cohort_shared.go does the arithmetic of [cohort.allowed].
type cohort struct {
	members map[schema.TenantID]*member // immutable

	mu    sync.Mutex
	freed chan struct{} // closed when a slot is released; nil if there is no waiter
}

// member is a tenant with limits.
type member struct {
	cohort                  *cohort
	subject                 *subject
	tenant                  schema.TenantID
	nominal, borrow, weight int
	recalls                 atomic.Int64           // calls that wait for slots that the tenant has lent
	used                    atomic.Int64           // calls in flight here
	waiting                 atomic.Int64           // calls that wait here for a slot of the tenant
	turns                   [classes]chan struct{} // semaphores; the holder is the waiter that retries

	short time.Time // until then, the tenant counts as wanting more; guarded by cohort.mu
}

// claimFor is how long a tenant counts as wanting more after it found no slot. With Redis, that lasts
// until the second renewal.
const claimFor = time.Second

// newCohort returns nil if no tenant has limits.
func newCohort(q *Quota, of map[schema.TenantID]settings.TenantLimits) *cohort {
	p := &cohort{members: make(map[schema.TenantID]*member)}
	for id, l := range of {
		if !l.Limited() {
			continue
		}
		id = id.OrDefault()
		s := newSubject(q, false, string(id), &limits{inFlight: l.Nominal + l.Borrow})
		s.key, s.slots.exact = partsKey, true
		s.member = &member{cohort: p, subject: s, tenant: id, nominal: l.Nominal, borrow: l.Borrow, weight: max(1, l.Weight), turns: [classes]chan struct{}{make(chan struct{}, 1), make(chan struct{}, 1)}}
		p.members[id] = s.member
	}
	if len(p.members) == 0 {
		return nil
	}
	return p
}

// of returns the subject of the tenant, or nil if it has no limits.
func (p *cohort) of(tenant schema.TenantID) *subject {
	if p == nil {
		return nil
	}
	if m := p.members[tenant.OrDefault()]; m != nil {
		return m.subject
	}
	return nil
}

func (p *cohort) each(f func(*subject)) {
	if p == nil {
		return
	}
	for _, m := range p.members {
		f(m.subject)
	}
}

// total returns the sum of the nominal limits.
func (p *cohort) total() (n int) {
	for _, m := range p.members {
		n += m.nominal
	}
	return n
}

// wake returns a channel that is closed when a slot of any tenant is released.
func (p *cohort) wake() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.freed == nil {
		p.freed = make(chan struct{})
	}
	return p.freed
}

func (p *cohort) free() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.freed != nil {
		close(p.freed)
		p.freed = nil
	}
}

// here returns the limits at this front door if that number of front doors cannot coordinate.
func (m *member) here(doors int) (nominal, borrow int) {
	if nominal = m.nominal; nominal > 0 {
		nominal = share(nominal, doors)
	}
	if borrow = m.borrow; borrow > 0 {
		borrow = share(borrow, doors)
	}
	return nominal, borrow
}

// allowed returns the number of slots that the tenant may have here if it wants that number.
func (p *cohort) allowed(m *member, now time.Time, want, doors int) int {
	nominal, borrow := m.here(doors)
	free, spare := nominal, nominal-min(nominal, want)
	weights, contested := m.weight, false
	for _, o := range p.members {
		if o == m {
			continue
		}
		n, b := o.here(doors)
		held, short := int(o.used.Load()), now.Before(o.short)
		own := min(held, n)
		if short {
			own = n
		}
		free += n - max(held, own)
		spare += n - own
		more := short && held >= n && held < n+b
		contested = contested || more
		if more || held > n {
			weights += o.weight
		}
	}
	allowed := min(free, nominal+borrow)
	if contested {
		allowed = min(allowed, nominal+max(1, spare*m.weight/weights))
	}
	return max(allowed, 0)
}

// take takes a slot without coordination with other front doors.
func (p *cohort) take(m *member, now time.Time, c class, doors int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	used := int(m.used.Load())
	allowed := p.allowed(m, now, used+1, doors)
	if c == bulk {
		allowed -= reserved(allowed)
	}
	if used < allowed {
		m.used.Add(1)
		return true
	}
	m.short = now.Add(claimFor)
	return false
}

// takeLocked implements [subject.takeLocked] for a tenant.
func (m *member) takeLocked(now time.Time, c class, doors int, remote bool) (verdict, redisRequest) {
	s := &m.subject.slots
	if remote {
		ok, ask := s.look(now, c, m.nominal+m.borrow, doors, true)
		if ok {
			m.used.Add(1)
			s.take()
			return verdict{ok: true}, nothing
		}
		if ask {
			return verdict{}, aLease
		}
		return verdict{wait: guess, lent: s.used+s.others < m.nominal}, nothing
	}
	if m.cohort.take(m, now, c, doors) {
		s.take()
		return verdict{ok: true}, nothing
	}
	nominal, _ := m.here(doors)
	return verdict{wait: guess, lent: s.used < nominal}, nothing
}

// releaseSlot releases a slot.
func (m *member) releaseSlot() {
	m.used.Add(-1)
	m.cohort.free()
}

// mayRecall reports whether one more call may wait for slots that the tenant has lent. The number of
// waiters is limited to the number of its nominal slots that it does not use.
func (m *member) mayRecall(waiting int) bool {
	s := m.subject
	nominal, others := m.nominal, 0
	if !s.q.shared.up() {
		nominal, _ = m.here(int(s.q.doors.Load()))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.q.shared.up() {
		others = s.slots.others
	}
	return s.slots.used+others+waiting <= nominal
}

// refusal returns the error for callers.
func (m *member) refusal(v verdict) *schema.Error {
	if v.lent {
		return schema.Errorf(schema.KindQuota, "Your tenant has %d calls in flight of its own (limits.nominal of tenant %q), and other tenants still use some of them; the call did not start. Try again later.", m.nominal, m.tenant)
	}
	return schema.Errorf(schema.KindQuota, "Your tenant has %d calls in flight of its own (limits.nominal of tenant %q) and up to %d that other tenants leave unused (limits.borrow), and no more are left; the call did not start. Wait for some of them to end.", m.nominal, m.tenant, m.borrow)
}
