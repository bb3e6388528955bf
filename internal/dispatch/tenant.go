package dispatch

import "github.com/callyard/callyard/pkg/schema"

// tenantQueue holds the lines of the principals of one tenant in a ring. Tenants take turns in
// proportion to their weights, and the principals of a tenant share its turns, so more principals
// do not give a tenant more slots. If tenants are not separated, there is one tenantQueue.
type tenantQueue struct {
	tenant  schema.TenantID
	weight  float64
	credit  float64 // a slot costs 1; unused if this is the only tenant
	current *line   // the line whose turn it is
	lines   int
	n       int // calls that wait in the lines
	next    *tenantQueue
	prev    *tenantQueue
}

// weights holds the weight functions of principals and tenants.
type weights struct {
	principal func(string) int          // if nil, all weigh 1
	tenant    func(schema.TenantID) int // if nil, tenants are not separated
}

// key returns the key of the call's line.
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

// tenantQueue returns the queue of the tenant. A new one is added to the end of the ring.
func (c *class) tenantQueue(tenant schema.TenantID, w *weights) *tenantQueue {
	if t := c.tenants[tenant]; t != nil {
		return t
	}
	if c.tenants == nil {
		c.tenants = make(map[schema.TenantID]*tenantQueue)
	}
	t := &tenantQueue{tenant: tenant, weight: w.ofTenant(tenant)}
	c.tenants[tenant] = t
	if c.at == nil {
		t.next, t.prev, c.at = t, t, t
	} else {
		t.next, t.prev = c.at, c.at.prev
		t.prev.next, t.next.prev = t, t
	}
	c.heaviest = max(c.heaviest, t.weight)
	return t
}

// leave removes an empty queue from the ring.
func (c *class) leave(t *tenantQueue) {
	delete(c.tenants, t.tenant)
	if t.next == t {
		c.at, c.heaviest = nil, 0
		return
	}
	t.prev.next, t.next.prev = t.next, t.prev
	if c.at == t {
		c.at = t.prev // the next one gets its credit when tenantTurn advances to it
	}
	if t.weight < c.heaviest {
		return
	}
	c.heaviest = 0
	for _, other := range c.tenants {
		c.heaviest = max(c.heaviest, other.weight)
	}
}

// part returns the credit that the tenant gets in each round. The heaviest one gets 1, so that each
// round serves at least one call and no tenant gets many slots in a row.
func (c *class) part(t *tenantQueue) float64 { return t.weight / c.heaviest }

// tenantTurn returns the queue whose turn it is. The class must not be empty.
func (c *class) tenantTurn() *tenantQueue {
	if c.at.next == c.at {
		c.at.credit = 0
		return c.at
	}
	for c.at.credit < 1 {
		c.nextTenant()
	}
	return c.at
}

func (c *class) nextTenant() {
	c.at = c.at.next
	c.at.credit += c.part(c.at)
}

// tries returns the number of turns until every line has had one.
func (c *class) tries() int {
	if len(c.tenants) <= 1 {
		return len(c.lines)
	}
	longest := 0
	for _, t := range c.tenants {
		longest = max(longest, t.lines)
	}
	return longest * len(c.tenants)
}

// crowded reports whether the tenant of the key uses at least its share of a queue of the given
// length. It is true if tenants are not separated.
func (c *class) crowded(key lineKey, most int, w *weights) bool {
	if w.tenant == nil {
		return true
	}
	t, own, others := c.tenants[key.tenant], 0, len(c.tenants)
	if t != nil {
		own, others = t.n, others-1
	}
	return own >= most/(others+1)
}

// Waiting returns the number of calls of each tenant that wait for a slot here, by stored tenant
// id, without calls that avoid a worker after a failed attempt. If tenants are not separated, all
// calls belong to the default one. It is safe for concurrent use.
func (r *Router) Waiting() map[schema.TenantID]int {
	r.mu.RLock()
	defer r.mu.RUnlock()
	all := make(map[schema.TenantID]int)
	for _, rt := range r.routes {
		rt.countTenants(all)
	}
	return all
}

// countTenants adds the waiting calls of the route.
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
	for id, t := range c.tenants {
		all[id] += t.n
	}
}
