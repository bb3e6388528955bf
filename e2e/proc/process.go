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

// Time limits for processes.
const (
	StartWithin = 90 * time.Second
	StopWithin  = time.Minute
	Soon        = time.Minute
	pollEvery   = 20 * time.Millisecond

	// shownAtFailure limits the part of the output that is shown when a test fails.
	shownAtFailure = 16 << 10
)

// Process is a program that a test started. It ends with the test at the latest.
type Process struct {
	Name string
	Cmd  *exec.Cmd
	Out  *Output

	captured *Captured
}

// Program describes a program to start.
type Program struct {
	Name string // in messages; if empty, the base of Path
	Path string
	Args []string
	Env  []string // in addition to the test's environment, without variables that configure Callyard
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
	out := &Output{}
	captured, err := Capture(cmd, out)
	if err != nil {
		t.Fatalf("starting %s: %v", p.Name, err)
	}
	proc := &Process{Name: p.Name, Cmd: cmd, Out: out, captured: captured}
	t.Cleanup(func() {
		proc.end(t)
		captured.Close()
		if t.Failed() {
			t.Logf("--- %s (pid %d, %v) said at last:\n%s", proc.Name, cmd.Process.Pid, cmd.ProcessState, proc.Out.Tail(shownAtFailure))
		}
	})
	return proc
}

// CleanEnviron returns the environment of the test without variables that configure Callyard.
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

// PID returns the process ID.
func (p *Process) PID() int { return p.Cmd.Process.Pid }

// Ended reports whether the process has ended.
func (p *Process) Ended() bool { return p.captured.Ended() }

// EndsWithin waits for the end, and reports whether the process ended in time.
func (p *Process) EndsWithin(d time.Duration) bool {
	select {
	case <-p.captured.Done:
		return true
	case <-time.After(d):
		return false
	}
}

// Wait waits for the end and returns the exit code, or -1 after a signal.
func (p *Process) Wait(t testing.TB, within time.Duration) int {
	t.Helper()
	select {
	case <-p.captured.Done:
	case <-time.After(within):
		t.Fatalf("%s did not end within %s", p.Name, within)
	}
	return p.Cmd.ProcessState.ExitCode()
}

// Signal sends a signal to a running process.
func (p *Process) Signal(t testing.TB, s syscall.Signal) {
	t.Helper()
	if err := p.Cmd.Process.Signal(s); err != nil {
		t.Fatalf("sending %v to %s: %v", s, p.Name, err)
	}
}

// Stop stops the process as an operator does, and checks that it ends gracefully.
func (p *Process) Stop(t testing.TB) {
	t.Helper()
	p.Signal(t, syscall.SIGTERM)
	if code := p.Wait(t, StopWithin); code != 0 {
		t.Errorf("%s ended with code %d after SIGTERM", p.Name, code)
	}
}

// Kill9 kills the process with SIGKILL.
func (p *Process) Kill9(t testing.TB) {
	t.Helper()
	p.Signal(t, syscall.SIGKILL)
	p.Wait(t, Soon)
}

// end makes sure that the process has ended.
func (p *Process) end(t testing.TB) {
	if p.Ended() {
		return
	}
	_ = p.Cmd.Process.Signal(syscall.SIGTERM) // it may be ending right now
	select {
	case <-p.captured.Done:
		return
	case <-time.After(StopWithin):
	}
	t.Errorf("%s did not end within %s after SIGTERM", p.Name, StopWithin)
	_ = p.Cmd.Process.Kill()
	<-p.captured.Done
}

// Says waits until the output of the process matches, and returns the submatches.
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

// Eventually is like the function [Eventually], but fails when the process ends.
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

// Eventually repeats check until it returns no error.
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
