package dispatch

import (
	"math"

	"github.com/callyard/callyard/pkg/schema"
)

// class holds the waiting calls of one kind, in a line for each principal with waiting calls. The
// lines of a tenant form a ring, and so do the tenants. Both are served by deficit round robin.
type class struct {
	n        int // waiting calls, including those in picky
	picky    chain
	lines    map[lineKey]*line // of all tenants
	tenants  map[schema.TenantID]*tenantQueue
	at       *tenantQueue // the tenant whose turn it is; nil without lines
	heaviest float64      // largest weight of a tenant
	shares   map[schema.PrincipalID]*share
	spare    *line // a dropped line for reuse: with one principal, lines come and go
}

// lineKey identifies a line. Each priority of a principal has a separate line.
type lineKey struct {
	tenant    schema.TenantID // "" if tenants are not separated
	principal string
	priority  int
}

func (k lineKey) principalID() schema.PrincipalID {
	return schema.PrincipalID{Tenant: k.tenant, Name: k.principal}
}

// line is the FIFO queue of one principal. It exists while calls wait in it.
type line struct {
	chain
	key    lineKey
	tenant *tenantQueue
	share  *share
	scale  float64
	credit float64 // a slot costs 1
	next   *line
	prev   *line
}

// share is a principal's share of the turns. Lines of several priorities do not increase it above
// the average weight of the lines.
type share struct {
	weight       float64
	sum, squares float64 // over the scales of its lines
	lines        int
}

// quantum returns the credit that the line gets in each round.
func (l *line) quantum() float64 {
	s := l.share
	if s.lines == 1 {
		return s.weight * l.scale
	}
	return s.weight * l.scale * s.squares / (s.sum * s.sum)
}

const (
	mostPriority   = 10
	priorityDouble = 5 // number of steps that double or halve the share
	mostWeight     = 1000
)

func weightOf(weight func(string) int, principal string) float64 {
	if weight == nil {
		return 1
	}
	return float64(max(1, min(weight(principal), mostWeight)))
}

func scaleOf(priority int) float64 { return math.Exp2(float64(priority) / priorityDouble) }

// line returns the line of the key. A new line is added to the end of the ring.
func (c *class) line(key lineKey, w *weights) *line {
	if l := c.lines[key]; l != nil {
		return l
	}
	if c.lines == nil {
		c.lines, c.shares = make(map[lineKey]*line), make(map[schema.PrincipalID]*share)
	}
	who := key.principalID()
	s := c.shares[who]
	if s == nil {
		s = &share{weight: weightOf(w.principal, key.principal)}
		c.shares[who] = s
	}
	l := c.spare
	if c.spare = nil; l == nil {
		l = new(line)
	}
	t := c.tenantQueue(key.tenant, w)
	*l = line{key: key, tenant: t, share: s, scale: scaleOf(key.priority)}
	s.lines, s.sum, s.squares = s.lines+1, s.sum+l.scale, s.squares+l.scale*l.scale
	c.lines[key] = l
	t.lines++
	if t.current == nil {
		l.next, l.prev, t.current = l, l, l
		return l
	}
	l.next, l.prev = t.current, t.current.prev
	l.prev.next, l.next.prev = l, l
	return l
}

// push adds the waiter to the line of its key.
func (c *class) push(w *waiter, key lineKey, by *weights) {
	c.n++
	w.line = c.line(key, by)
	w.line.tenant.n++
	w.line.push(w)
}

// remove removes the waiter from its line or from picky.
func (c *class) remove(w *waiter) {
	c.n--
	w.in.remove(w)
	if l := w.line; l != nil {
		w.line = nil
		l.tenant.n--
		if l.n == 0 {
			c.drop(l)
		}
	}
}

// served removes a waiter that got a slot or place, and charges its line.
func (c *class) served(w *waiter) {
	if w.line != nil {
		w.line.credit--
		w.line.tenant.credit--
	}
	c.remove(w)
}

// drop removes an empty line from the ring. Its credit is lost.
func (c *class) drop(l *line) {
	delete(c.lines, l.key)
	s := l.share
	if s.lines--; s.lines == 0 {
		delete(c.shares, l.key.principalID())
	}
	s.sum, s.squares = s.sum-l.scale, s.squares-l.scale*l.scale
	c.spare = l
	t := l.tenant
	t.lines--
	if l.next == l {
		t.current = nil
		c.leave(t)
		return
	}
	l.prev.next, l.next.prev = l.next, l.prev
	if t.current == l {
		// The next line gets its quantum when turn advances to it.
		t.current = l.prev
	}
}

// turn returns the line whose turn it is. The class must not be empty.
func (c *class) turn() *line {
	t := c.tenantTurn()
	for passed := 0; t.current.credit < 1; passed++ {
		if passed > t.lines {
			t.skip()
		}
		t.pass()
	}
	return t.current
}

// first returns the first call of some line, or nil without lines.
func (c *class) first() *waiter {
	if c.at == nil {
		return nil
	}
	return c.at.current.first
}

func (t *tenantQueue) pass() {
	t.current = t.current.next
	t.current.credit += t.current.quantum()
}

// pass gives the turn of a line that can use nothing now to the next line.
func (c *class) pass() {
	t := c.at
	t.current.credit = min(t.current.credit, t.current.quantum())
	t.pass()
	if t.next != t {
		t.credit = min(t.credit, c.part(t))
		c.nextTenant()
	}
}

// skip adds the credit of all rounds that would serve no line. There are such rounds if all quanta
// are below one.
func (t *tenantQueue) skip() {
	rounds := math.Inf(1)
	for l, i := t.current, 0; i < t.lines; l, i = l.next, i+1 {
		rounds = min(rounds, (1-l.credit)/l.quantum())
	}
	if rounds = math.Floor(rounds); rounds > 0 {
		for l, i := t.current, 0; i < t.lines; l, i = l.next, i+1 {
			l.credit += rounds * l.quantum()
		}
	}
}

// callsAhead returns the approximate number of calls of its kind that get a slot before a new call
// with this key, and the number of waiting calls of the same line.
func (c *class) callsAhead(key lineKey, w *weights) (turns, own int) {
	mine := weightOf(w.principal, key.principal) * scaleOf(key.priority)
	all := mine
	for _, l := range c.lines {
		if l.key == key {
			own = l.n
		} else if l.key.tenant == key.tenant {
			all += l.quantum()
		}
	}
	weight := w.ofTenant(key.tenant)
	total := weight
	for _, t := range c.tenants {
		if t.tenant != key.tenant {
			total += t.weight
		}
	}
	all *= total / weight
	return min(c.n, int(float64(own+1)*all/mine)), own
}
