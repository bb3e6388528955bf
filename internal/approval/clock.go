package approval

import (
	"sync"
	"time"
)

// patience judges whether the time of an approval, or of a permission, has ended. The clock on the wall may
// jump; what has passed while this process looked on cannot be taken back. So
// time has expired when the wall says so, or when as much of it has passed here as
// was left when this process first saw it. A jump can end it early, and never
// late.
type patience struct {
	mu     sync.Mutex
	last   time.Time
	passed time.Duration // by steps forward only, which time.Now measures without the wall
	due    map[string]due
}

// due is when the time of one has ended, in what has passed here.
type due struct {
	expires time.Time // as it was then: more time may be given
	at      time.Duration
}

func newPatience() *patience { return &patience{due: map[string]due{}} }

// over says that the time of what has this id has ended; it began at created and
// ends at expires.
func (p *patience) over(id string, created, expires, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if step := now.Sub(p.last); step > 0 && !p.last.IsZero() {
		p.passed += step
	}
	p.last = now
	wall := now.Round(0) // without the monotonic reading of time.Now
	d, known := p.due[id]
	switch {
	case !known:
		// A wall that is behind the beginning gives no more time than there was.
		d = due{expires, p.passed + min(expires.Sub(wall), expires.Sub(created))}
		p.due[id] = d
	case !d.expires.Equal(expires):
		d = due{expires, d.at + expires.Sub(d.expires)}
		p.due[id] = d
	}
	return !wall.Before(expires) || p.passed >= d.at
}

// keep forgets everything but these.
func (p *patience) keep(ids map[string]bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id := range p.due {
		if !ids[id] {
			delete(p.due, id)
		}
	}
}
