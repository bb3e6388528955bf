package dispatch

import (
	"math"

	"github.com/callyard/callyard/pkg/schema"
)

// class is the calls of one kind that wait: a line for each principal that has
// any, in a ring for each tenant. The tenants, and the lines of each, are served by deficit
// round robin.
type class struct {
	n        int // calls that wait, the picky ones included
	picky    chain
	lines    map[lineKey]*line // of all tenants
	towns    map[schema.TenantID]*town
	at       *town   // whose turn it is; nil without lines
	heaviest float64 // weight of a town
	shares   map[schema.PrincipalID]*share
	spare    *line // memory of one that was dropped: with one principal they come and go
}

// lineKey names a line. The priorities of one principal have lines of their own.
type lineKey struct {
	tenant    schema.TenantID // "" where tenants are not kept apart
	principal string
	priority  int
}

func (k lineKey) who() schema.PrincipalID {
	return schema.PrincipalID{Tenant: k.tenant, Name: k.principal}
}

// line is the calls of one principal, first come, first served. It exists while
// calls wait in it.
type line struct {
	chain
	key    lineKey
	town   *town
	share  *share
	scale  float64
	credit float64 // a slot costs 1
	next   *line
	prev   *line
}

// share is a principal's part of the turns. Having lines of several priorities
// does not make it larger than its lines weigh on average.
type share struct {
	weight       float64
	sum, squares float64 // of the scales of its lines
	lines        int
}

// quantum is what the line gets in each round.
func (l *line) quantum() float64 {
	s := l.share
	if s.lines == 1 {
		return s.weight * l.scale
	}
	return s.weight * l.scale * s.squares / (s.sum * s.sum)
}

const (
	mostPriority   = 10
	priorityDouble = 5 // the number of steps that double or halve the share
	mostWeight     = 1000
)

func weightOf(weight func(string) int, principal string) float64 {
	if weight == nil {
		return 1
	}
	return float64(max(1, min(weight(principal), mostWeight)))
}

func scaleOf(priority int) float64 { return math.Exp2(float64(priority) / priorityDouble) }

// line returns the line of the key, which enters the ring behind all others if
// it is new.
func (c *class) line(key lineKey, w *weights) *line {
	if l := c.lines[key]; l != nil {
		return l
	}
	if c.lines == nil {
		c.lines, c.shares = make(map[lineKey]*line), make(map[schema.PrincipalID]*share)
	}
	who := key.who()
	s := c.shares[who]
	if s == nil {
		s = &share{weight: weightOf(w.principal, key.principal)}
		c.shares[who] = s
	}
	l := c.spare
	if c.spare = nil; l == nil {
		l = new(line)
	}
	t := c.town(key.tenant, w)
	*l = line{key: key, town: t, share: s, scale: scaleOf(key.priority)}
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

// push has the waiter wait in the line of its key.
func (c *class) push(w *waiter, key lineKey, by *weights) {
	c.n++
	w.line = c.line(key, by)
	w.line.town.n++
	w.line.push(w)
}

// remove takes the waiter out, wherever in the class it waits.
func (c *class) remove(w *waiter) {
	c.n--
	w.in.remove(w)
	if l := w.line; l != nil {
		w.line = nil
		l.town.n--
		if l.n == 0 {
			c.drop(l)
		}
	}
}

// served is remove for a waiter that got what it waited for.
func (c *class) served(w *waiter) {
	if w.line != nil {
		w.line.credit--
		w.line.town.credit--
	}
	c.remove(w)
}

// drop takes an empty line out of the ring; what credit it had is gone.
func (c *class) drop(l *line) {
	delete(c.lines, l.key)
	s := l.share
	if s.lines--; s.lines == 0 {
		delete(c.shares, l.key.who())
	}
	s.sum, s.squares = s.sum-l.scale, s.squares-l.scale*l.scale
	c.spare = l
	t := l.town
	t.lines--
	if l.next == l {
		t.current = nil
		c.leave(t)
		return
	}
	l.prev.next, l.next.prev = l.next, l.prev
	if t.current == l {
		// The one behind gets its quantum when turn comes to it.
		t.current = l.prev
	}
}

// turn returns the line whose turn it is; there is one.
func (c *class) turn() *line {
	t := c.townsTurn()
	for passed := 0; t.current.credit < 1; passed++ {
		if passed > t.lines {
			t.skip()
		}
		t.pass()
	}
	return t.current
}

// first returns the call of any line; nil without lines.
func (c *class) first() *waiter {
	if c.at == nil {
		return nil
	}
	return c.at.current.first
}

func (t *town) pass() {
	t.current = t.current.next
	t.current.credit += t.current.quantum()
}

// pass has the next line take the turn of one that can use nothing now.
func (c *class) pass() {
	t := c.at
	t.current.credit = min(t.current.credit, t.current.quantum())
	t.pass()
	if t.next != t {
		t.credit = min(t.credit, c.part(t))
		c.nextTown()
	}
}

// skip gives all lines what they would get in the rounds that serve nobody,
// which there are when all quanta are below one.
func (t *town) skip() {
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

// before returns, roughly, the number of calls of its kind that get a slot before one that
// would come now with this key, and the number of calls of the same line that wait.
func (c *class) before(key lineKey, w *weights) (turns, own int) {
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
	for _, t := range c.towns {
		if t.tenant != key.tenant {
			total += t.weight
		}
	}
	all *= total / weight
	return min(c.n, int(float64(own+1)*all/mine)), own
}
