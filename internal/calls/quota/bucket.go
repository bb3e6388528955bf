package quota

import "time"

// bucket is the rate of one subject: GCRA here, or tokens drawn from the bucket
// that all front doors share. It is guarded by its subject.
type bucket struct {
	// due is when the calls so far would have come at an even pace.
	due   time.Time
	pools [classes]pool
}

// pool is the tokens that were drawn for calls of one class.
type pool struct {
	tokens int
	till   time.Time
	// empty is until when the shared bucket has none.
	empty time.Time
}

const (
	// drawFor is the time for which tokens are drawn at once.
	drawFor = 20 * time.Millisecond
	// drawnFor is how long they count.
	drawnFor = time.Second
)

// burstOf is how many calls of the class may come at once.
func burstOf(burst int, c class) int {
	if c == bulk {
		return burst - reserved(burst)
	}
	return burst
}

// take takes one call's worth. Where there is none it says for how long, or that
// Redis must be asked.
func (b *bucket) take(now time.Time, c class, l *limits, doors int, remote bool) (wait time.Duration, ask bool) {
	if !remote {
		interval := l.interval * time.Duration(doors)
		next := b.due
		if next.Before(now) {
			next = now
		}
		next = next.Add(interval)
		if wait := next.Sub(now) - interval*time.Duration(burstOf(share(l.burst, doors), c)); wait > 0 {
			return wait, false
		}
		b.due = next
		return 0, false
	}
	p := &b.pools[c]
	if p.tokens > 0 && now.Before(p.till) {
		p.tokens--
		return 0, false
	}
	if wait := p.empty.Sub(now); wait > 0 {
		return wait, false
	}
	return 0, true
}

// chunk is how many tokens to draw at once, from a bucket of which size.
func chunk(c class, l *limits) (burst, n int) {
	burst = burstOf(l.burst, c)
	return burst, max(1, min(int(drawFor/l.interval), burst/4))
}

// drawn takes n tokens in; with none, wait is until there are some.
func (b *bucket) drawn(now time.Time, c class, n int, wait time.Duration) {
	p := &b.pools[c]
	if n == 0 {
		p.empty = now.Add(wait)
		return
	}
	if !now.Before(p.till) {
		p.tokens = 0
	}
	p.tokens, p.till = p.tokens+n, now.Add(drawnFor)
}

// refund gives one call's worth back.
func (b *bucket) refund(c class, l *limits, doors int, remote bool) {
	if remote {
		b.pools[c].tokens++
		return
	}
	b.due = b.due.Add(-l.interval * time.Duration(doors))
}
