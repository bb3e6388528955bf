package bwrap

import (
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"github.com/callyard/callyard/internal/kit/sleep"
	"github.com/callyard/callyard/internal/launch"
)

// stopGrace is the time for bwrap to end after everything in its sandbox was killed.
const stopGrace = 2 * time.Second

// Process is one running sandbox. It has the methods of [launch.Child], which are safe for
// concurrent use. The program inside ends before the sandbox does.
type Process struct {
	// Stdin and Stdout are the worker's ends of the server's pipes. Stop closes both.
	Stdin  io.WriteCloser
	Stdout *os.File

	child *launch.Child
	inner handle // the first process of the sandbox; all others end with it
	timer *time.Timer
	begun time.Time
	limit time.Duration

	mu    sync.Mutex
	why   string // the reason why it was killed
	cause Cause
	gone  bool // inner was closed
}

// PID returns the pid of bwrap.
func (p *Process) PID() int { return p.child.PID() }

// Done returns a channel that is closed when the whole sandbox has ended.
func (p *Process) Done() <-chan struct{} { return p.child.Done() }

// Err returns how the sandbox ended. It is nil until Done is closed, and not nil after that.
func (p *Process) Err() error {
	err := p.child.Err()
	if err == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.why != "" {
		return errors.New(p.why)
	}
	return err
}

// Cause returns why the sandbox was killed. It is empty if the sandbox was stopped or ended by itself.
func (p *Process) Cause() Cause {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cause
}

// StderrTail is like [launch.Child.StderrTail].
func (p *Process) StderrTail() string { return p.child.StderrTail() }

// Limit sets the time at which the sandbox is killed, at most Spec.Time after its start.
func (p *Process) Limit(at time.Time) {
	left := max(min(time.Until(at), p.limit-time.Since(p.begun)), 0)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timer != nil {
		p.timer.Stop()
	}
	if !p.gone {
		p.timer = time.AfterFunc(left, func() { p.killFor(Deadline, limitText(time.Since(p.begun))) })
	}
}

// Kill kills everything in the sandbox without waiting; see Done. The first reason counts.
func (p *Process) Kill(why string) { p.killFor("", why) }

func (p *Process) killFor(cause Cause, why string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.child.Done():
		return
	default:
	}
	if p.why == "" {
		p.why, p.cause = why, cause
	}
	if !p.gone {
		p.inner.kill()
	}
}

// Stop closes stdin, waits for grace, kills the rest, and returns when everything has ended. It
// closes Stdout. It may be called more than once and concurrently. The caller of Start must call it
// in the end.
func (p *Process) Stop(grace time.Duration) {
	p.Stdin.Close()
	if grace > 0 {
		sleep.For(grace, p.child.Done())
	}
	p.Kill("was stopped")
	p.child.Stop(stopGrace) // bwrap ends with its sandbox; otherwise it is killed
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timer != nil {
		p.timer.Stop()
	}
	if !p.gone {
		p.gone = true
		p.inner.close()
	}
}
