package launch

import (
	"os"
	"sync/atomic"
	"time"
)

// pipes are the three pipes of one child, both ends of each.
type pipes struct {
	stdin, stdout, stderr *os.File
	child                 [3]*os.File
}

func openPipes() (pipes, error) {
	var p pipes
	var err error
	if p.child[0], p.stdin, err = os.Pipe(); err == nil {
		if p.stdout, p.child[1], err = os.Pipe(); err == nil {
			p.stderr, p.child[2], err = os.Pipe()
		}
	}
	if err != nil {
		p.closeChild()
		p.closeOurs()
	}
	return p, err
}

// Close of a nil *os.File only returns an error, so a partly filled set is fine here.

func (p *pipes) closeChild() {
	for _, f := range p.child {
		f.Close()
	}
}

func (p *pipes) closeOurs() {
	p.stdin.Close()
	p.stdout.Close()
	p.stderr.Close()
}

// pipeBudget distributes large pipe buffers, with which a child and a session block less often. The
// system limits the total of the pipes of one user, by default to 64 MiB; beyond that every new pipe
// of the user has only 8 KiB. So the budget is half of that, and with many children the buffers are
// smaller.
type pipeBudget struct {
	used atomic.Int64
}

const (
	pipeLarge  = 1 << 20
	pipeMiddle = 256 << 10
	budgetSoft = 16 << 20 // large pipes up to this total
	budgetHard = 32 << 20 // medium pipes up to this total, then none
)

// enlarge enlarges the pipe if the budget and the system allow, and returns the bytes taken from the
// budget.
func (b *pipeBudget) enlarge(f *os.File) int64 {
	size := int64(pipeLarge)
	switch used := b.used.Load(); {
	case used >= budgetHard:
		return 0
	case used >= budgetSoft:
		size = pipeMiddle
	}
	b.used.Add(size)
	if !setPipeSize(f, int(size)) {
		b.used.Add(-size)
		return 0
	}
	return size
}

func (b *pipeBudget) release(n int64) { b.used.Add(-n) }

// drainTime limits the time for which Stop waits for a reader.
const drainTime = 250 * time.Millisecond

// waitUntilEmpty returns when the pipe is empty, or after the limit, so that the last responses of a server
// that ended cleanly are not lost. A pipe reports its fill level but sends no event when it becomes
// empty, so waitUntilEmpty polls.
func waitUntilEmpty(f *os.File, limit time.Duration) {
	pause := time.Millisecond
	for deadline := time.Now().Add(limit); unread(f) > 0 && time.Now().Before(deadline); pause *= 2 {
		time.Sleep(pause)
	}
}
