package quota

import "time"

// bucket limits the rate of one subject: by GCRA in this process, or by tokens drawn from the bucket
// that all front doors share. It is guarded by subject.mu.
type bucket struct {
	// due is the theoretical arrival time of GCRA: when the calls so far would have arrived at an
	// even rate.
	due   time.Time
	pools [classes]pool
}

// pool holds the tokens that were drawn for calls of one class.
type pool struct {
	tokens int
	till   time.Time
	// empty is the time until which the shared bucket has no tokens.
	empty time.Time
}

const (
	// drawFor is the time range covered by the tokens of one draw.
	drawFor = 20 * time.Millisecond
	// drawnFor is the time for which drawn tokens are valid.
	drawnFor = time.Second
)

// burstOf returns the burst size for calls of the class.
func burstOf(burst int, c class) int {
	if c == bulk {
		return burst - reserved(burst)
	}
	return burst
}

// take takes one token. If there is none, it returns the time until there is one, or ask if Redis must
// be asked.
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

// chunk returns the burst size of the shared bucket, and the number of tokens to draw at once.
func chunk(c class, l *limits) (burst, n int) {
	burst = burstOf(l.burst, c)
	return burst, max(1, min(int(drawFor/l.interval), burst/4))
}

// drawn adds n drawn tokens. If n is 0, wait is the time until the shared bucket has some.
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

// refund returns one token.
func (b *bucket) refund(c class, l *limits, doors int, remote bool) {
	if remote {
		b.pools[c].tokens++
		return
	}
	b.due = b.due.Add(-l.interval * time.Duration(doors))
}
