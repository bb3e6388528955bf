package dispatch

import "math"

// class is the calls of one kind that wait: a line for each principal that has
// any, in a ring served by deficit round robin.
type class struct {
	n       int // calls that wait, the picky ones included
	picky   chain
	lines   map[lineKey]*line
	current *line // whose turn it is; nil without lines
	shares  map[string]*share
	spare   *line // memory of one that was dropped: with one principal they come and go
}

// lineKey names a line. The priorities of one principal have lines of their own.
type lineKey struct {
	principal string
	priority  int
}

// line is the calls of one principal, first come, first served. It exists while
// calls wait in it.
type line struct {
	chain
	key    lineKey
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
func (c *class) line(key lineKey, weight func(string) int) *line {
	if l := c.lines[key]; l != nil {
		return l
	}
	if c.lines == nil {
		c.lines, c.shares = make(map[lineKey]*line), make(map[string]*share)
	}
	s := c.shares[key.principal]
	if s == nil {
		s = &share{weight: weightOf(weight, key.principal)}
		c.shares[key.principal] = s
	}
	l := c.spare
	if c.spare = nil; l == nil {
		l = new(line)
	}
	*l = line{key: key, share: s, scale: scaleOf(key.priority)}
	s.lines, s.sum, s.squares = s.lines+1, s.sum+l.scale, s.squares+l.scale*l.scale
	c.lines[key] = l
	if c.current == nil {
		l.next, l.prev, c.current = l, l, l
		return l
	}
	l.next, l.prev = c.current, c.current.prev
	l.prev.next, l.next.prev = l, l
	return l
}

// push has the waiter wait in the line of its key.
func (c *class) push(w *waiter, key lineKey, weight func(string) int) {
	c.n++
	w.line = c.line(key, weight)
	w.line.push(w)
}

// remove takes the waiter out, wherever in the class it waits.
func (c *class) remove(w *waiter) {
	c.n--
	w.in.remove(w)
	if l := w.line; l != nil {
		w.line = nil
		if l.n == 0 {
			c.drop(l)
		}
	}
}

// served is remove for a waiter that got what it waited for.
func (c *class) served(w *waiter) {
	if w.line != nil {
		w.line.credit--
	}
	c.remove(w)
}

// drop takes an empty line out of the ring; what credit it had is gone.
func (c *class) drop(l *line) {
	delete(c.lines, l.key)
	s := l.share
	if s.lines--; s.lines == 0 {
		delete(c.shares, l.key.principal)
	}
	s.sum, s.squares = s.sum-l.scale, s.squares-l.scale*l.scale
	c.spare = l
	if l.next == l {
		c.current = nil
		return
	}
	l.prev.next, l.next.prev = l.next, l.prev
	if c.current == l {
		// The one behind gets its quantum when turn comes to it.
		c.current = l.prev
	}
}

// turn returns the line whose turn it is; there is one.
func (c *class) turn() *line {
	for passed := 0; c.current.credit < 1; passed++ {
		if passed > len(c.lines) {
			c.skip()
		}
		c.current = c.current.next
		c.current.credit += c.current.quantum()
	}
	return c.current
}

// pass has the next line take the turn of one that can use nothing now.
func (c *class) pass() {
	c.current.credit = min(c.current.credit, c.current.quantum())
	c.current = c.current.next
	c.current.credit += c.current.quantum()
}

// skip gives all lines what they would get in the rounds that serve nobody,
// which there are when all quanta are below one.
func (c *class) skip() {
	rounds := math.Inf(1)
	for _, l := range c.lines {
		rounds = min(rounds, (1-l.credit)/l.quantum())
	}
	if rounds = math.Floor(rounds); rounds > 0 {
		for _, l := range c.lines {
			l.credit += rounds * l.quantum()
		}
	}
}

// before returns, roughly, the number of calls of its kind that get a slot before one that
// would come now with this key, and the number of calls of the same line that wait.
func (c *class) before(key lineKey, weight func(string) int) (turns, own int) {
	mine := weightOf(weight, key.principal) * scaleOf(key.priority)
	all := mine
	for _, l := range c.lines {
		if l.key == key {
			own = l.n
		} else {
			all += l.quantum()
		}
	}
	return min(c.n, int(float64(own+1)*all/mine)), own
}
