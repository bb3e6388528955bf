package launch

import (
	"os"
	"sync/atomic"
	"time"
)

// pipes are the three pipes of one child: our ends and its ends.
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

// A nil *os.File refuses to close and does nothing else, so half-made sets are fine here.

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

// pipeBudget shares out large pipe buffers, with which a child and a session
// wait for each other less often. The system limits what the pipes of one user
// hold, by default to 64 MiB; beyond it every new pipe of that user shrinks to
// 8 KiB. So only half of that is taken, and many children get smaller pipes.
type pipeBudget struct {
	used atomic.Int64
}

const (
	pipeLarge  = 1 << 20
	pipeMiddle = 256 << 10
	budgetSoft = 16 << 20 // large pipes up to here
	budgetHard = 32 << 20 // middle ones up to here, then none
)

// enlarge makes the pipe larger where the budget and the system allow, and
// returns what it took from the budget.
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

func (b *pipeBudget) giveBack(n int64) { b.used.Add(-n) }

// drainTime bounds how long Stop waits for a reader.
const drainTime = 250 * time.Millisecond

// letDrain returns when nothing is left to read in the pipe, or after drainTime:
// the last answers of a server that ended in good order are worth that. A pipe
// tells how full it is but not when it becomes empty, so it is asked.
func letDrain(f *os.File) {
	pause := time.Millisecond
	for deadline := time.Now().Add(drainTime); unread(f) > 0 && time.Now().Before(deadline); pause *= 2 {
		time.Sleep(pause)
	}
}
