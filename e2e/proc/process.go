package proc

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Limits for what a process does.
const (
	StartWithin = 60 * time.Second
	StopWithin  = 30 * time.Second
	Soon        = 20 * time.Second
	pollEvery   = 20 * time.Millisecond

	// shownAtFailure is how much of the end of its output is shown.
	shownAtFailure = 16 << 10
)

// Process is a program that a test started. It ends with the test at the latest.
type Process struct {
	Name string
	Cmd  *exec.Cmd
	Out  *Output

	done chan struct{} // closed when it ended and Out is whole
}

// Program says what to start.
type Program struct {
	Name string // in messages; the base of Path when empty
	Path string
	Args []string
	Env  []string // in addition to the test's, less what would configure Callyard
	Dir  string
}

// Start starts the program.
func Start(t testing.TB, p Program) *Process {
	t.Helper()
	if p.Name == "" {
		p.Name = p.Path[strings.LastIndexByte(p.Path, '/')+1:]
	}
	cmd := exec.Command(p.Path, p.Args...)
	cmd.Env = append(CleanEnviron(), p.Env...)
	cmd.Dir = p.Dir
	cmd.SysProcAttr = EndsWithUs()
	proc := &Process{Name: p.Name, Cmd: cmd, Out: &Output{}, done: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = proc.Out, proc.Out
	// Children that outlive the process hold its output; that must not keep a
	// test from noticing its end.
	cmd.WaitDelay = time.Second
	if err := cmd.Start(); err != nil {
		t.Fatalf("starting %s: %v", p.Name, err)
	}
	go func() {
		defer close(proc.done)
		_ = cmd.Wait() // ProcessState has what a test wants to know
	}()
	t.Cleanup(func() {
		proc.end(t)
		if t.Failed() {
			t.Logf("--- %s (pid %d, %v) said at last:\n%s", proc.Name, cmd.Process.Pid, cmd.ProcessState, proc.Out.Tail(shownAtFailure))
		}
	})
	return proc
}

// CleanEnviron is the environment of the test without what configures Callyard.
func CleanEnviron() []string {
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

// PID is the number of the process.
func (p *Process) PID() int { return p.Cmd.Process.Pid }

// Ended says whether the process has ended.
func (p *Process) Ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// EndsWithin waits for the end, and says whether it came in time.
func (p *Process) EndsWithin(d time.Duration) bool {
	select {
	case <-p.done:
		return true
	case <-time.After(d):
		return false
	}
}

// Wait waits for the end and returns the exit code, -1 for a signal.
func (p *Process) Wait(t testing.TB, within time.Duration) int {
	t.Helper()
	select {
	case <-p.done:
	case <-time.After(within):
		t.Fatalf("%s did not end within %s", p.Name, within)
	}
	return p.Cmd.ProcessState.ExitCode()
}

// Signal sends a signal to a process that runs.
func (p *Process) Signal(t testing.TB, s syscall.Signal) {
	t.Helper()
	if err := p.Cmd.Process.Signal(s); err != nil {
		t.Fatalf("sending %v to %s: %v", s, p.Name, err)
	}
}

// Stop asks the process to end, as an operator does, and checks that it does so
// in good order.
func (p *Process) Stop(t testing.TB) {
	t.Helper()
	p.Signal(t, syscall.SIGTERM)
	if code := p.Wait(t, StopWithin); code != 0 {
		t.Errorf("%s ended with code %d after SIGTERM", p.Name, code)
	}
}

// Kill9 ends the process as the kernel does when memory is short.
func (p *Process) Kill9(t testing.TB) {
	t.Helper()
	p.Signal(t, syscall.SIGKILL)
	p.Wait(t, Soon)
}

// end makes sure that the process is gone.
func (p *Process) end(t testing.TB) {
	if p.Ended() {
		return
	}
	_ = p.Cmd.Process.Signal(syscall.SIGTERM) // it may be ending right now
	select {
	case <-p.done:
		return
	case <-time.After(StopWithin):
	}
	t.Errorf("%s did not end within %s after SIGTERM", p.Name, StopWithin)
	_ = p.Cmd.Process.Kill()
	<-p.done
}

// Says waits until what the process wrote matches, and returns the submatches.
func (p *Process) Says(t testing.TB, pattern string) []string {
	t.Helper()
	re := regexp.MustCompile(pattern)
	var found []string
	p.Eventually(t, StartWithin, "saying "+pattern, func() error {
		if found = re.FindStringSubmatch(p.Out.String()); found == nil {
			return fmt.Errorf("it has not")
		}
		return nil
	})
	return found
}

// Eventually is the function of that name; it gives up when the process ends.
func (p *Process) Eventually(t testing.TB, within time.Duration, what string, check func() error) {
	t.Helper()
	Eventually(t, within, p.Name+": "+what, func() error {
		ended := p.Ended()
		err := check()
		if err != nil && ended {
			t.Fatalf("%s: %s: %v, and the process has ended: %v", p.Name, what, err, p.Cmd.ProcessState)
		}
		return err
	})
}

// Eventually checks again and again until there is no error.
func Eventually(t testing.TB, within time.Duration, what string, check func() error) {
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
