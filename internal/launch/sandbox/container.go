package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/callyard/callyard/internal/kit/sleep"
	"github.com/callyard/callyard/internal/launch"
)

const (
	lastOutput = 2 * time.Second        // time for a reader to take the last output of a container that ended
	lastWords  = 250 * time.Millisecond // the same for a killed container
	oomWait    = 2 * time.Second        // time for the engine to report an out-of-memory kill; it may be late on a busy machine
	removeTry  = 3
	killedCode = 137
)

// Container is one running sandbox. It has the pipes and methods of [launch.Child], which are safe for
// concurrent use.
type Container struct {
	// Stdin and Stdout are the worker's ends of the container's pipes. Stop closes both.
	Stdin  io.WriteCloser
	Stdout *os.File

	engine  *Engine
	spec    *Spec
	way     *exit // nil if it has no egress
	counted bool  // it occupies a place of the engine's total
	name    string
	id      string
	conn    net.Conn
	tail    *launch.Tail
	done    chan struct{}
	err     error // set before done is closed
	oom     chan struct{}
	oomOne  sync.Once
	taken   atomic.Pointer[string] // the principal that received it

	mu    sync.Mutex
	why   string // the reason why it is being killed
	cause Cause
	doomC chan struct{}
	timer *time.Timer
}

// ID returns the engine's id of the container.
func (c *Container) ID() string { return c.id }

// PID returns 0, because the process belongs to the engine and may be on another machine.
func (c *Container) PID() int { return 0 }

// Done returns a channel that is closed when the container was removed.
func (c *Container) Done() <-chan struct{} { return c.done }

// Err returns how the container ended, such as "exited with code 3" or "was killed at its time limit of
// 30s". It is not nil after Done is closed, nor while a killed container is being removed.
func (c *Container) Err() error {
	select {
	case <-c.done:
		return c.err
	default:
	}
	if why := c.reason(); why != "" {
		return errors.New(why)
	}
	return nil
}

// Cause is the reason why a container did not end by itself.
type Cause string

// Causes. A container that ended by itself or was stopped has NoCause.
const (
	NoCause  Cause = ""
	Deadline Cause = "deadline" // it was killed at its time limit
	Memory   Cause = "memory"   // it exceeded its memory limit
	Lost     Cause = "lost"     // its engine disappeared
)

// Cause returns why the container ended. It is empty until Done is closed.
func (c *Container) Cause() Cause {
	select {
	case <-c.done:
	default:
		return NoCause
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cause
}

// StderrTail returns the last 8 KiB of the server's stderr, like [launch.Child.StderrTail].
func (c *Container) StderrTail() string { return c.tail.String() }

// Stop closes stdin, waits for grace, kills the container, and returns when it was removed. It closes
// Stdout. It may be called more than once and concurrently.
func (c *Container) Stop(grace time.Duration) {
	c.Stdin.Close()
	if grace > 0 {
		sleep.For(grace, c.done)
	}
	c.kill("was stopped")
	<-c.done
	c.Stdout.Close()
}

// Limit sets the time at which the container is killed, at most Spec.Time from now. Call it when
// handing the container to a caller.
func (c *Container) Limit(at time.Time) {
	left := max(min(time.Until(at), c.spec.Time), 0)
	text := "was killed at its time limit, " + left.Round(time.Millisecond).String() + " after it was assigned"
	c.mu.Lock()
	defer c.mu.Unlock()
	c.timer.Stop()
	c.timer = time.AfterFunc(left, func() { c.killFor(Deadline, text) })
}

// kill makes the owner remove the container. The first reason counts.
func (c *Container) kill(why string) { c.killFor(NoCause, why) }

func (c *Container) killFor(cause Cause, why string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.why == "" {
		c.why = why
		if cause != NoCause {
			c.cause = cause
		}
		close(c.doomC)
	}
}

func (c *Container) reason() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.why
}

// claim assigns the container to the principal. It fails if the container was used, so that no second
// caller ever gets it.
func (c *Container) claim(principal string) error {
	if !c.taken.CompareAndSwap(nil, &principal) {
		return fmt.Errorf("the container %s was already assigned", c.name)
	}
	return nil
}

// own is the only goroutine that waits for the container and removes it.
func (c *Container) own(end client.ContainerWaitResult, stopWaiting func(), output io.Reader, pipe *os.File) {
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		// An error means that the connection or the reader is gone. No one needs it, and own handles
		// the end.
		_, _ = stdcopy.StdCopy(pipe, c.tail, output)
		pipe.Close()
		// The engine removes a container only when it has sent all of its output.
		_, _ = io.Copy(io.Discard, output)
	}()

	err := c.await(end, stopWaiting, pipe)
	stopWaiting()
	c.mu.Lock()
	c.timer.Stop()
	c.mu.Unlock()
	left := lastOutput
	if c.reason() != "" {
		left = lastWords
	}
	sleep.For(left, drained) // all of it, if nothing reads the output, or the engine does not report the end
	c.conn.Close()
	pipe.Close() // this ends a blocked write
	<-drained
	c.tail.End()
	c.err = err
	c.way.close()

	e := c.engine
	e.mu.Lock()
	delete(e.live, c.name)
	e.mu.Unlock()
	if c.counted {
		<-e.total
	}
	e.log.Debug("container ended", "server", c.spec.Server, "container", c.name, "how", err.Error())
	close(c.done)
}

// await returns how the container ended, after its removal. It closes pipe some time after the
// container was killed: output that nobody reads would block the removal.
func (c *Container) await(end client.ContainerWaitResult, stopWaiting func(), pipe *os.File) error {
	doom := c.doomC
	var late <-chan time.Time
	for {
		select {
		case result := <-end.Result:
			return c.how(result)
		case err := <-end.Error:
			// The engine cannot report the end. It may have stopped or restarted.
			if removeErr := c.engine.remove(c.id); removeErr != nil {
				c.engine.log.Error("a container may remain; it is removed when the engine responds again", "server", c.spec.Server, "container", c.name, "error", removeErr)
			}
			if why := c.reason(); why != "" {
				return errors.New(why)
			}
			c.mark(Lost)
			return fmt.Errorf("was lost: the connection to the container engine ended (%w)", err)
		case <-doom:
			doom = nil
			unblock := time.AfterFunc(lastWords, func() { pipe.Close() })
			defer unblock.Stop()
			if err := c.engine.remove(c.id); err != nil {
				c.engine.log.Warn("removing a container failed", "server", c.spec.Server, "container", c.name, "error", err)
			}
			timer := time.NewTimer(closeLimit)
			defer timer.Stop()
			late = timer.C
		case <-late:
			stopWaiting() // end.Error reports it
		}
	}
}

// how returns a sentence for the end of the container.
func (c *Container) how(result container.WaitResponse) error {
	if why := c.reason(); why != "" {
		return errors.New(why)
	}
	switch {
	case result.StatusCode == killedCode && !sleep.For(oomWait, c.oom):
		c.mark(Memory)
		return errors.New("was killed because it used more than its " + bytesText(c.spec.host.Memory) + " of memory")
	case result.StatusCode > 128:
		return fmt.Errorf("was killed by signal: %s", syscall.Signal(result.StatusCode-128))
	}
	return fmt.Errorf("exited with code %d", result.StatusCode)
}

func (c *Container) mark(cause Cause) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cause = cause
}

// remove kills and removes a container. A container that does not exist is not an error. It works also
// after the Engine was closed.
func (e *Engine) remove(idOrName string) error {
	var err error
	for try := range removeTry {
		ctx, cancel := context.WithTimeout(context.Background(), closeLimit/(2*removeTry))
		_, err = removeOne(ctx, e.client, idOrName)
		cancel()
		if err == nil || client.IsErrConnectionFailed(err) {
			break
		}
		sleep.For(time.Duration(try+1)*50*time.Millisecond, nil)
	}
	return err
}

// removeOne kills and removes a container, or leaves that to another removal in progress. It reports
// whether the engine knew the container.
func removeOne(ctx context.Context, cl *client.Client, idOrName string) (known bool, err error) {
	_, err = cl.ContainerRemove(ctx, idOrName, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
	switch {
	case cerrdefs.IsNotFound(err):
		return false, nil
	case cerrdefs.IsConflict(err):
		return true, nil
	}
	return true, err
}

// abandon removes a container that did not start. While the engine is away, the start and the janitor
// report that. The janitor removes the container, if there is one, when the engine responds again.
func (e *Engine) abandon(name string) {
	if err := e.remove(name); err != nil && !client.IsErrConnectionFailed(err) {
		e.log.Warn("removing a container that did not start failed", "container", name, "error", err)
	}
}
