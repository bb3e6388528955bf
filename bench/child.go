package bench

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"github.com/callyard/callyard/internal/kit/sleep"
)

// tailSize limits the part of a child's log that an error quotes.
const tailSize = 2 << 10

// child is a process of the fabric. Its output goes to a file.
type child struct {
	name string
	cmd  *exec.Cmd
	log  string
	done chan struct{} // closed when the process has ended and been waited for
}

// startChild starts the program at path with additional environment variables. Its output goes
// to the file log.
func startChild(name, path string, args []string, log string, env ...string) (*child, error) {
	out, err := os.Create(log)
	if err != nil {
		return nil, fmt.Errorf("making the log of %s: %w", name, err)
	}
	defer out.Close()
	cmd := exec.Command(path, args...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.Env = append(childEnvironment(os.Environ()), env...)
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	c := &child{name: name, cmd: cmd, log: log, done: make(chan struct{})}
	go func() {
		defer close(c.done)
		_ = cmd.Wait() // the exit status is in ProcessState
	}()
	return c, nil
}

// childEnvironment removes variables that would configure the fabric, so that the
// measurement depends on the bench alone.
func childEnvironment(env []string) []string {
	var kept []string
	for _, entry := range env {
		name, _, _ := strings.Cut(entry, "=")
		if name == "PORT" || strings.HasPrefix(name, "CALLYARD_") || strings.HasPrefix(name, "MCP_") {
			continue
		}
		kept = append(kept, entry)
	}
	return kept
}

func (c *child) pid() int { return c.cmd.Process.Pid }

// ended returns an error with the end of the child's log if the child has ended.
func (c *child) ended() error {
	select {
	case <-c.done:
		return fmt.Errorf("%s ended early (%s): %s", c.name, c.cmd.ProcessState, c.tail())
	default:
		return nil
	}
}

// tail returns the end of the child's log.
func (c *child) tail() string {
	f, err := os.Open(c.log)
	if err != nil {
		return "its log cannot be read"
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Size() > tailSize {
		_, _ = f.Seek(-tailSize, io.SeekEnd)
	}
	text, _ := io.ReadAll(io.LimitReader(f, tailSize))
	if len(text) == 0 {
		return "it wrote nothing"
	}
	return strings.TrimSpace(string(text))
}

// stop terminates the child and waits for it. It kills the child after the grace period.
func (c *child) stop() error {
	_ = c.cmd.Process.Signal(syscall.SIGTERM) // fails only if it has ended
	if !sleep.For(stopGrace, c.done) {
		return nil
	}
	_ = c.cmd.Process.Kill()
	<-c.done
	return fmt.Errorf("%s did not end within %s and was killed", c.name, stopGrace)
}

// stopAll stops the children in reverse order of their start.
func stopAll(children []*child) error {
	var errs []error
	for i := len(children) - 1; i >= 0; i-- {
		errs = append(errs, children[i].stop())
	}
	return errors.Join(errs...)
}
