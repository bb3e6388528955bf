package quota

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/pkg/schema"
)

// cohort is the calls in flight that the tenants with limits have together: as many as the sum
// of their nominal parts. A tenant may have its nominal part, and what it borrows of the
// parts that others leave unused. Tenants without limits take no part.
//
// A tenant that found none of its own part claims it: until it finds all that it asks for,
// nothing of its part is lent again. So it has its part as soon as the borrowed calls that
// are under way have ended. While several tenants want to borrow more, each borrows at most
// its share by weight.
//
// With Redis the arithmetic of [cohort.allowed] is that of the script of cohort_shared.go.
type cohort struct {
	members map[schema.TenantID]*member // never changed

	mu    sync.Mutex
	freed chan struct{} // closed when a slot is given back; nil: nobody waits
}

// member is a tenant with limits.
type member struct {
	cohort                  *cohort
	subject                 *subject
	tenant                  schema.TenantID
	nominal, borrow, weight int
	recalls                 atomic.Int64           // calls that wait for what the tenant has lent
	used                    atomic.Int64           // calls under way here
	turns                   [classes]chan struct{} // who has it is the one that looks

	short time.Time // until when it counts as one that wants more; guarded by the cohort
}

// claimFor is how long a tenant counts as one that wants more after it found nothing. With
// Redis it is until the next renewal but one.
const claimFor = time.Second

// newCohort returns nil where no tenant has limits.
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

// of returns the tenant, nil where nothing limits it.
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

// total is the calls of all tenants with limits.
func (p *cohort) total() (n int) {
	for _, m := range p.members {
		n += m.nominal
	}
	return n
}

// wake returns what is closed when a slot of any tenant is given back.
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

// here is the limits at one of that many front doors that do not know of each other.
func (m *member) here(doors int) (nominal, borrow int) {
	if nominal = m.nominal; nominal > 0 {
		nominal = share(nominal, doors)
	}
	if borrow = m.borrow; borrow > 0 {
		borrow = share(borrow, doors)
	}
	return nominal, borrow
}

// allowed is the number of slots that the tenant may have here if it wants that many.
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

// take takes a slot at a front door that does not know of the others.
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

// takeLocked is that of its subject.
func (m *member) takeLocked(now time.Time, c class, doors int, remote bool) (verdict, need) {
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

// left gives a slot back.
func (m *member) left() {
	m.used.Add(-1)
	m.cohort.free()
}

// mayRecall says whether one more call may wait for what the tenant has lent: no more do
// than it has calls of its own left.
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

// refusal is the error for callers.
func (m *member) refusal(v verdict) *schema.Error {
	if v.lent {
		return schema.Errorf(schema.KindQuota, "Your tenant has %d calls in flight of its own (limits.nominal of tenant %q), and other tenants still use some of them; the call did not start. Try again later.", m.nominal, m.tenant)
	}
	return schema.Errorf(schema.KindQuota, "Your tenant has %d calls in flight of its own (limits.nominal of tenant %q) and up to %d that other tenants leave unused (limits.borrow), and no more are left; the call did not start. Wait for some of them to end.", m.nominal, m.tenant, m.borrow)
}
