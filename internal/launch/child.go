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

// stderrGrace limits the wait for the last of stderr after a child and its descendants have ended.
// Only an escaped process can use it up.
const stderrGrace = 250 * time.Millisecond

// Child is one running server process. Its methods are safe for concurrent use.
type Child struct {
	// Stdin and Stdout are the worker's ends of the child's pipes, raw and unbuffered. They support
	// deadlines, and Close ends a blocked Read or Write. Stop closes both. Stdin is also closed when
	// the process ends.
	Stdin  io.WriteCloser
	Stdout *os.File

	launcher *Launcher
	id       string
	cookie   string
	proc     *process
	stdin    *os.File
	tail     *tail
	borrowed int64 // from the pipe budget
	done     chan struct{}
	err      error // set before done is closed

	mu     sync.Mutex
	reaped bool       // the pid may belong to another process now
	tree   []identity // descendants found while the process lived
}

// PID returns the process id.
func (c *Child) PID() int { return c.proc.Pid }

// Done returns a channel that is closed when the process was reaped and its remaining descendants
// were killed.
func (c *Child) Done() <-chan struct{} { return c.done }

// Err returns how the process ended, such as "exited with code 3" or "killed by signal: killed". It
// is nil until Done is closed, and not nil after that.
func (c *Child) Err() error {
	select {
	case <-c.done:
		return c.err
	default:
		return nil
	}
}

// StderrTail returns the last 8 KiB of the child's stderr, as valid UTF-8 without control characters
// other than newline and tab. Configured values of environment variables are replaced by the names
// of the variables.
func (c *Child) StderrTail() string { return c.tail.String() }

// Stop ends the child and returns when it was reaped and its remaining descendants were killed. It
// closes stdin and waits for grace, sends SIGTERM to the process group and waits for grace again,
// then kills the group. It closes Stdout after a short time in which a reader can take the rest.
// Stop may be called more than once and concurrently; the shortest grace applies.
func (c *Child) Stop(grace time.Duration) { c.stop(grace, grace, drainTime) }

// stop is [Child.Stop] with separate times after the end of stdin, after SIGTERM and for the reader of Stdout.
func (c *Child) stop(afterEOF, afterTerm, drain time.Duration) {
	c.rememberTree()
	c.stdin.Close()
	if !c.endsWithin(afterEOF) {
		c.rememberTree()
		c.signalGroup(syscall.SIGTERM)
		if !c.endsWithin(afterTerm) {
			c.rememberTree()
			c.signalGroup(syscall.SIGKILL)
			<-c.done
		}
	}
	waitUntilEmpty(c.Stdout, drain)
	c.Stdout.Close()
}

func (c *Child) endsWithin(d time.Duration) bool {
	select { // even with a grace of zero, do not signal a process that has ended
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

// own is the only goroutine that waits for the process and cleans up after it.
func (c *Child) own(stderr *os.File) {
	defer c.launcher.forget(c)
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		c.tail.drain(stderr)
	}()

	// Until it is reaped, a dead process keeps its pid, and so its group id. Kill everything before
	// that, while the ids cannot be reused.
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
	_ = stderr.SetReadDeadline(time.Now().Add(stderrGrace)) // a pipe always supports deadlines
	<-drained
	if n := unread(stderr); n > 0 { // the other goroutine came too late
		_ = stderr.SetReadDeadline(time.Time{})
		c.tail.drain(io.LimitReader(stderr, int64(n)))
	}
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

// signalGroup signals the child's process group as long as the group id cannot have been reused.
func (c *Child) signalGroup(sig syscall.Signal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.reaped {
		killGroup(c.proc.Pid, sig)
	}
}

// rememberTree records the descendants. A process that left the group and cleared its environment
// can be found only through its parents while they live, so this runs before any process is asked
// to end.
func (c *Child) rememberTree() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.reaped {
		c.tree = append(c.tree[:len(c.tree):len(c.tree)], treeOf(c.proc.Pid)...)
	}
}

// killGroup signals all members of a process group. A group that no longer exists is not an error.
func killGroup(pgid int, sig syscall.Signal) {
	if pgid > 1 { // 0, 1 and -1 would signal this process or every process
		_ = syscall.Kill(-pgid, sig)
	}
}
