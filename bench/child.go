package bench

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// tailSize is how much of a child's log an error repeats.
const tailSize = 2 << 10

// child is a process of the fabric, with its output in a file.
type child struct {
	name string
	cmd  *exec.Cmd
	log  string
	done chan struct{} // closed when it has ended and was waited for
}

// startChild starts the program at path with more environment. Its output goes to the file
// log.
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
		_ = cmd.Wait() // how it ended is read from ProcessState
	}()
	return c, nil
}

// childEnvironment leaves out what would configure the fabric from outside: the
// run measures what the bench says and nothing else.
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

// ended returns an error with the end of the child's log once it has ended.
func (c *child) ended() error {
	select {
	case <-c.done:
		return fmt.Errorf("%s ended early (%s): %s", c.name, c.cmd.ProcessState, c.tail())
	default:
		return nil
	}
}

// tail returns the last of what the child wrote.
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

// stop asks the child to end, waits for it, and kills it after the grace.
func (c *child) stop() error {
	_ = c.cmd.Process.Signal(syscall.SIGTERM) // fails only when it has ended
	grace := time.NewTimer(stopGrace)
	defer grace.Stop()
	select {
	case <-c.done:
		return nil
	case <-grace.C:
	}
	_ = c.cmd.Process.Kill()
	<-c.done
	return fmt.Errorf("%s did not end within %s and was killed", c.name, stopGrace)
}

// stopAll stops the children, the last started first.
func stopAll(children []*child) error {
	var errs []error
	for i := len(children) - 1; i >= 0; i-- {
		errs = append(errs, children[i].stop())
	}
	return errors.Join(errs...)
}
