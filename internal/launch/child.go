package launch

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"
)

// stderrGrace is how long the last of stderr is waited for once a child and its
// descendants are gone; only a process that got away can make it last.
const stderrGrace = 250 * time.Millisecond

// Child is one running server process. Its methods are safe for concurrent use.
type Child struct {
	// Stdin and Stdout are our ends of the child's pipes, raw and unbuffered. They
	// work with deadlines, and a Close from elsewhere ends a waiting Read or Write.
	// Stop closes both. Stdin is closed as well when the process ends.
	Stdin  io.WriteCloser
	Stdout *os.File

	launcher *Launcher
	id       string
	cookie   string
	proc     *process
	stdin    *os.File
	tail     *tail
	borrowed int64 // of the pipe budget
	done     chan struct{}
	err      error // set before done is closed

	mu     sync.Mutex
	reaped bool       // the pid means nothing any more
	tree   []identity // descendants seen while the process lived
}

// PID returns the process id.
func (c *Child) PID() int { return c.proc.Pid }

// Done returns a channel that is closed when the process was reaped and what it
// left behind was killed.
func (c *Child) Done() <-chan struct{} { return c.done }

// Err says how the process ended, as in "exited with code 3" or "killed by
// signal: killed". It is nil until Done is closed, and never after.
func (c *Child) Err() error {
	select {
	case <-c.done:
		return c.err
	default:
		return nil
	}
}

// StderrTail returns the last 8 KiB that the child wrote to stderr, as valid
// UTF-8 without control characters other than newline and tab. Values of its
// environment that were configured for it are replaced by their names.
func (c *Child) StderrTail() string { return c.tail.String() }

// Stop ends the child and returns when it was reaped and what it left behind was
// killed: it closes stdin and waits for grace, sends SIGTERM to the process
// group and waits for grace again, then kills the group. It closes Stdout, after
// a short time for a reader to take what is left in it. Stop may be called more
// than once and from several goroutines; the shortest grace wins.
func (c *Child) Stop(grace time.Duration) {
	c.rememberTree()
	c.stdin.Close()
	if !c.endsWithin(grace) {
		c.rememberTree()
		c.signalGroup(syscall.SIGTERM)
		if !c.endsWithin(grace) {
			c.rememberTree()
			c.signalGroup(syscall.SIGKILL)
			<-c.done
		}
	}
	letDrain(c.Stdout)
	c.Stdout.Close()
}

func (c *Child) endsWithin(d time.Duration) bool {
	select { // a grace of zero is no reason to signal what has ended
	case <-c.done:
		return true
	default:
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-c.done:
		return true
	case <-timer.C:
		return false
	}
}

// own is the one goroutine that waits for the process and cleans up behind it.
func (c *Child) own(stderr *os.File) {
	defer c.launcher.forget(c)
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		c.tail.drain(stderr)
	}()

	// Until it is reaped a dead process keeps its pid, and so its group id, from
	// being used again. All killing is done in that time.
	c.proc.awaitExit()
	c.signalGroup(syscall.SIGKILL)
	c.mu.Lock()
	tree := c.tree
	c.mu.Unlock()
	killTree(tree)
	c.launcher.sweeper.sweep(c.cookie)
	if c.launcher.reaper != nil {
		c.launcher.reaper.remove(c.proc.Pid)
	}
	c.err = c.reap()

	c.stdin.Close()
	_ = stderr.SetReadDeadline(time.Now().Add(stderrGrace)) // a pipe always takes a deadline
	<-drained
	stderr.Close()
	c.launcher.log.Info("server process ended", "server", c.id, "pid", c.proc.Pid, "how", c.err.Error())
	close(c.done)
}

func (c *Child) reap() error {
	c.mu.Lock()
	c.reaped = true
	c.mu.Unlock()
	state, err := c.proc.Wait()
	if err != nil {
		return fmt.Errorf("ended for an unknown reason: %w", err)
	}
	status, ok := state.Sys().(syscall.WaitStatus)
	if ok && status.Signaled() {
		return errors.New("was killed by signal: " + status.Signal().String())
	}
	return fmt.Errorf("exited with code %d", state.ExitCode())
}

// signalGroup signals the child's process group while that is certainly its own.
func (c *Child) signalGroup(sig syscall.Signal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.reaped {
		killGroup(c.proc.Pid, sig)
	}
}

// rememberTree notes the descendants. A process that left the group and cleared
// its environment can be found by its parents only, and only as long as these
// live, so it is done before anything is asked to end.
func (c *Child) rememberTree() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.reaped {
		c.tree = append(c.tree[:len(c.tree):len(c.tree)], treeOf(c.proc.Pid)...)
	}
}

// killGroup signals all members of a process group. That they are gone already
// is what was wanted.
func killGroup(pgid int, sig syscall.Signal) {
	if pgid > 1 { // 0, 1 and -1 would reach ourselves or everybody
		_ = syscall.Kill(-pgid, sig)
	}
}
