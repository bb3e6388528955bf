package e2e

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const (
	// startWithin, stopWithin and soon are deadlines, not expectations: two cores
	// are shared with whatever else runs.
	startWithin = 60 * time.Second
	stopWithin  = 30 * time.Second
	soon        = 20 * time.Second
	pollEvery   = 20 * time.Millisecond

	// shownAtFailure is how much of the end of its output is shown.
	shownAtFailure = 16 << 10
)

// process is a program that a test started. It ends with the test at the latest.
type process struct {
	name string
	cmd  *exec.Cmd
	out  output
	done chan struct{} // closed when it ended and out is whole
}

// program says what to start.
type program struct {
	name string // in messages; the base of path when empty
	path string
	args []string
	env  []string // beside what the test has, less what would configure Callyard
	dir  string
}

// start starts the program.
func start(t testing.TB, p program) *process {
	t.Helper()
	if p.name == "" {
		p.name = p.path[strings.LastIndexByte(p.path, '/')+1:]
	}
	cmd := exec.Command(p.path, p.args...)
	cmd.Env = append(cleanEnviron(), p.env...)
	cmd.Dir = p.dir
	cmd.SysProcAttr = endsWithUs()
	proc := &process{name: p.name, cmd: cmd, done: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = &proc.out, &proc.out
	// Children that outlive the process hold its output; that must not keep a
	// test from noticing its end.
	cmd.WaitDelay = time.Second
	if err := cmd.Start(); err != nil {
		t.Fatalf("starting %s: %v", p.name, err)
	}
	go func() {
		defer close(proc.done)
		_ = cmd.Wait() // ProcessState has what a test wants to know
	}()
	t.Cleanup(func() {
		proc.end(t)
		if t.Failed() {
			t.Logf("--- %s (pid %d, %v) said at last:\n%s", proc.name, cmd.Process.Pid, cmd.ProcessState, proc.out.tail(shownAtFailure))
		}
	})
	return proc
}

// cleanEnviron is the environment of the test without what configures Callyard.
func cleanEnviron() []string {
	var env []string
	for _, e := range os.Environ() {
		name, _, _ := strings.Cut(e, "=")
		if name == "PORT" || name == "MCP_CONFIG_PATH" || strings.HasPrefix(name, "CALLYARD_") || strings.HasPrefix(name, "MCP_SERVER_") {
			continue
		}
		env = append(env, e)
	}
	return env
}

func (p *process) pid() int { return p.cmd.Process.Pid }

// ended says whether the process has ended.
func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// wait waits for the end and returns the exit code, -1 for a signal.
func (p *process) wait(t testing.TB, within time.Duration) int {
	t.Helper()
	select {
	case <-p.done:
	case <-time.After(within):
		t.Fatalf("%s did not end within %s", p.name, within)
	}
	return p.cmd.ProcessState.ExitCode()
}

func (p *process) signal(t testing.TB, s syscall.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		t.Fatalf("sending %v to %s: %v", s, p.name, err)
	}
}

// stop asks the process to end, as an operator does, and checks that it does so
// in good order.
func (p *process) stop(t testing.TB) {
	t.Helper()
	p.signal(t, syscall.SIGTERM)
	if code := p.wait(t, stopWithin); code != 0 {
		t.Errorf("%s ended with code %d after SIGTERM", p.name, code)
	}
}

// kill9 ends the process as the kernel does when memory is short.
func (p *process) kill9(t testing.TB) {
	t.Helper()
	p.signal(t, syscall.SIGKILL)
	p.wait(t, soon)
}

// end makes sure that the process is gone.
func (p *process) end(t testing.TB) {
	if p.ended() {
		return
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may be ending right now
	select {
	case <-p.done:
		return
	case <-time.After(stopWithin):
	}
	t.Errorf("%s did not end within %s after SIGTERM", p.name, stopWithin)
	_ = p.cmd.Process.Kill()
	<-p.done
}

// says waits until what the process wrote matches, and returns the submatches.
func (p *process) says(t testing.TB, pattern string) []string {
	t.Helper()
	re := regexp.MustCompile(pattern)
	var found []string
	p.eventually(t, startWithin, "saying "+pattern, func() error {
		if found = re.FindStringSubmatch(p.out.String()); found == nil {
			return fmt.Errorf("it has not")
		}
		return nil
	})
	return found
}

// eventually is the function of that name; it gives up when the process ends.
func (p *process) eventually(t testing.TB, within time.Duration, what string, check func() error) {
	t.Helper()
	eventually(t, within, p.name+": "+what, func() error {
		ended := p.ended()
		err := check()
		if err != nil && ended {
			t.Fatalf("%s: %s: %v, and the process has ended: %v", p.name, what, err, p.cmd.ProcessState)
		}
		return err
	})
}

// eventually checks again and again until there is no error.
func eventually(t testing.TB, within time.Duration, what string, check func() error) {
	t.Helper()
	deadline := time.NewTimer(within)
	defer deadline.Stop()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		err := check()
		if err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("%s: not within %s: %v", what, within, err)
		}
	}
}

// output keeps what a process wrote. It is safe for concurrent use.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write keeps p.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

// String returns all of it.
func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

func (o *output) tail(n int) string {
	text := o.String()
	if len(text) <= n {
		return text
	}
	text = text[len(text)-n:]
	_, text, _ = strings.Cut(text, "\n")
	return "…\n" + text
}
