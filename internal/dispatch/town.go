package dispatch

import "github.com/callyard/callyard/pkg/schema"

// town is the lines of the principals of one tenant, in a ring of their own. Tenants take
// turns first, in proportion to their weights, and the principals of one within its turns:
// a tenant gets no more slots for having more principals. Where tenants are not kept apart
// there is one town.
type town struct {
	tenant  schema.TenantID
	weight  float64
	credit  float64 // a slot costs 1; of no meaning while the town is alone
	current *line   // whose turn it is
	lines   int
	n       int // calls that wait in them
	next    *town
	prev    *town
}

// weights say what the shares of principals and tenants are.
type weights struct {
	principal func(string) int          // nil: 1 for all
	tenant    func(schema.TenantID) int // nil: tenants are not kept apart
}

// key is the line of the call.
func (w *weights) key(call *schema.Call) lineKey {
	k := keyOf(call)
	if w.tenant != nil {
		k.tenant = call.Principal.Tenant.Stored()
	}
	return k
}

func (w *weights) ofTenant(tenant schema.TenantID) float64 {
	if w.tenant == nil {
		return 1
	}
	return float64(max(1, min(w.tenant(tenant), mostWeight)))
}

// town returns the town of the tenant, which enters the ring behind all others if it is new.
func (c *class) town(tenant schema.TenantID, w *weights) *town {
	if t := c.towns[tenant]; t != nil {
		return t
	}
	if c.towns == nil {
		c.towns = make(map[schema.TenantID]*town)
	}
	t := &town{tenant: tenant, weight: w.ofTenant(tenant)}
	c.towns[tenant] = t
	if c.at == nil {
		t.next, t.prev, c.at = t, t, t
	} else {
		t.next, t.prev = c.at, c.at.prev
		t.prev.next, t.next.prev = t, t
	}
	c.heaviest = max(c.heaviest, t.weight)
	return t
}

// leave takes an empty town out of the ring.
func (c *class) leave(t *town) {
	delete(c.towns, t.tenant)
	if t.next == t {
		c.at, c.heaviest = nil, 0
		return
	}
	t.prev.next, t.next.prev = t.next, t.prev
	if c.at == t {
		c.at = t.prev // the one behind gets its part when turn comes to it
	}
	if t.weight < c.heaviest {
		return
	}
	c.heaviest = 0
	for _, other := range c.towns {
		c.heaviest = max(c.heaviest, other.weight)
	}
}

// part is what the town gets in each round: 1 for the heaviest, so that each round serves
// somebody and nobody gets many slots in a row.
func (c *class) part(t *town) float64 { return t.weight / c.heaviest }

// townsTurn returns the town whose turn it is; there is one.
func (c *class) townsTurn() *town {
	if c.at.next == c.at {
		c.at.credit = 0
		return c.at
	}
	for c.at.credit < 1 {
		c.nextTown()
	}
	return c.at
}

func (c *class) nextTown() {
	c.at = c.at.next
	c.at.credit += c.part(c.at)
}

// tries is how many turns there are to pass until every line had one.
func (c *class) tries() int {
	if len(c.towns) <= 1 {
		return len(c.lines)
	}
	longest := 0
	for _, t := range c.towns {
		longest = max(longest, t.lines)
	}
	return longest * len(c.towns)
}

// crowded reports whether the tenant of the line has at least its part of a queue of that
// length. Tenants that are not kept apart have all of it.
func (c *class) crowded(key lineKey, most int, w *weights) bool {
	if w.tenant == nil {
		return true
	}
	t, own, others := c.towns[key.tenant], 0, len(c.towns)
	if t != nil {
		own, others = t.n, others-1
	}
	return own >= most/(others+1)
}

// Waiting returns how many calls of each tenant wait for a slot here, by the stored id. Calls
// that avoid a worker after a failed attempt are not among them. Where tenants are not kept apart
// all are of the default one. It is safe for concurrent use.
func (r *Router) Waiting() map[schema.TenantID]int {
	r.mu.RLock()
	defer r.mu.RUnlock()
	all := make(map[schema.TenantID]int)
	for _, rt := range r.routes {
		rt.countTenants(all)
	}
	return all
}

// countTenants adds the calls that wait for the route.
func (r *route) countTenants(all map[schema.TenantID]int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.waiting.kinds {
		r.waiting.kinds[i].countTenants(all)
	}
	for _, l := range r.lanes {
		l.ahead.ready.countTenants(all)
	}
}

func (c *class) countTenants(all map[schema.TenantID]int) {
	for id, t := range c.towns {
		all[id] += t.n
	}
}
