package session

import (
	"sync/atomic"
	"time"
)

// A server that has several requests before it gains nothing from one more that
// arrives alone: it reads it with a system call of its own, and so do we its
// answer. While a busy server answers quickly, calls are therefore gathered until
// it has worked off most of what it has, and leave together. Measured with 50
// calls at once that saves a third of the server's CPU time for a call.
//
// Nothing waits for a server that does not answer quickly, nor longer than
// gatherMost.
const (
	gatherFrom = 8                      // requests that the server has, from which on others are gathered
	gatherSize = 16                     // gathered calls that leave whatever the server has
	gatherPace = 200 * time.Microsecond // the last answer is at most this old
	gatherMost = 500 * time.Microsecond
)

// gathering is the state of a link that gathers. All but idle is guarded by the
// session's lock.
type gathering struct {
	held    int // calls in the buffer that nobody has begun to write
	timer   *time.Timer
	waiting atomic.Bool // held is not 0; for the reader, who asks often
}

// gatherLocked reports whether the call that was just put into the buffer is to
// wait for others. The link is idle, and its session locked.
func (l *pipeLink) gatherLocked(now time.Time, more bool) bool {
	g := &l.gather
	g.held++
	before := len(l.s.calls) - g.held // requests that the server has
	busy := before >= gatherFrom && now.UnixNano()-l.s.heard.Load() <= int64(gatherPace)
	if !busy && !more || g.held >= gatherSize || len(l.buf) > keepBuffer {
		l.letGoLocked()
		return false
	}
	if g.held == 1 {
		g.waiting.Store(true)
		if g.timer == nil {
			g.timer = time.AfterFunc(gatherMost, l.release)
		} else {
			g.timer.Reset(gatherMost)
		}
	}
	return true
}

func (l *pipeLink) letGoLocked() {
	if l.gather.waiting.Load() {
		l.gather.waiting.Store(false)
		l.gather.timer.Stop()
	}
	l.gather.held = 0
}

// answersRead is called by the reader when it has dealt with everything that the
// server wrote so far.
func (l *pipeLink) answersRead() {
	if !l.gather.waiting.Load() {
		return
	}
	l.s.mu.Lock()
	enough := len(l.s.calls)-l.gather.held < gatherFrom
	l.s.mu.Unlock()
	if enough {
		l.release()
	}
}

// release sends what was gathered.
func (l *pipeLink) release() {
	l.s.mu.Lock()
	if l.gather.held == 0 || l.busy {
		l.s.mu.Unlock()
		return
	}
	l.letGoLocked()
	l.busy = true
	l.s.mu.Unlock()
	l.begin()
}

// begin writes what is buffered. The caller has made the link busy.
func (l *pipeLink) begin() {
	if l.fd == nil || l.flush(l.tryWrite) {
		l.signal()
	}
}

// stopGathering ends the timer of a link that closes.
func (l *pipeLink) stopGathering() {
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	if l.gather.timer != nil {
		l.gather.timer.Stop()
	}
}
