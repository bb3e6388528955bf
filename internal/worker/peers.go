package worker

import (
	"sync"
	"time"

	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

const (
	// peerSilent is how long a worker must be silent before its containers may be removed. The
	// janitor checks twice.
	peerSilent = 3500 * time.Millisecond
	// selfSilent is how long we may miss our own announcement. A worker that does not receive its
	// own announcements receives none, so it cannot know whether others have died.
	selfSilent = 2 * bus.AnnounceEvery
	peerForget = time.Minute
)

// peers tracks live workers by their announcements, for the janitor of their containers.
type peers struct {
	self string
	conn *bus.Conn
	w    *bus.Watch

	mu    sync.Mutex
	since time.Time
	seen  map[string]time.Time // by owner name
}

func newPeers(id schema.WorkerID, conn *bus.Conn) *peers {
	return &peers{self: ownerName(id), conn: conn, seen: make(map[string]time.Time)}
}

// watch subscribes to announcements.
func (p *peers) watch() (err error) {
	p.mu.Lock()
	p.since = time.Now()
	p.mu.Unlock()
	p.w, err = p.conn.WatchPresence(p.saw, func(*schema.FrontDoor) {})
	return err
}

func (p *peers) stop() {
	if p.w != nil {
		p.w.Stop()
	}
}

func (p *peers) saw(w *schema.Worker) { p.heard(ownerName(w.ID), time.Now()) }

func (p *peers) heard(owner string, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if owner == p.self && now.Sub(p.seen[owner]) > selfSilent {
		p.since = now // there was a gap, so the others have to announce themselves again
	}
	p.seen[owner] = now
	if owner == p.self {
		for other, at := range p.seen {
			if now.Sub(at) > peerForget {
				delete(p.seen, other)
			}
		}
	}
}

// alive reports whether the worker is or may be alive.
func (p *peers) alive(owner string) bool { return p.aliveAt(owner, time.Now()) }

func (p *peers) aliveAt(owner string, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.since.IsZero(), now.Sub(p.since) < peerSilent:
		return true // not listening for long enough
	case now.Sub(p.seen[p.self]) > selfSilent:
		return true
	}
	return now.Sub(p.seen[owner]) < peerSilent
}
