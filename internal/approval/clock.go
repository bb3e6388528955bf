package approval

import (
	"sync"
	"time"
)

// expiryClock decides whether an approval or a permission has expired. The wall clock may
// jump, but the time that this process has measured cannot be undone. Something has therefore
// expired if the wall clock says so, or if the time that remained when this process first saw
// it has passed. A clock jump can make it expire early, but never late.
type expiryClock struct {
	mu     sync.Mutex
	last   time.Time
	passed time.Duration // sum of forward steps, which time.Now measures without the wall clock
	due    map[string]due
}

// due is the expiry of one id in measured time.
type due struct {
	expires time.Time // as of the last look, because the deadline may be extended
	at      time.Duration
}

func newExpiryClock() *expiryClock { return &expiryClock{due: map[string]due{}} }

// over reports whether the thing with this id has expired. It was created at created and
// expires at expires.
func (p *expiryClock) over(id string, created, expires, now time.Time) bool {
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
		// A wall clock before the creation time must not grant more than the original period.
		d = due{expires, p.passed + min(expires.Sub(wall), expires.Sub(created))}
		p.due[id] = d
	case !d.expires.Equal(expires):
		d = due{expires, d.at + expires.Sub(d.expires)}
		p.due[id] = d
	}
	return !wall.Before(expires) || p.passed >= d.at
}

// keep forgets all other ids.
func (p *expiryClock) keep(ids map[string]bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id := range p.due {
		if !ids[id] {
			delete(p.due, id)
		}
	}
}
