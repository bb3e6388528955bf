package e2e

import (
	"syscall"
	"testing"
	"time"

	"github.com/callyard/callyard/e2e/proc"
)

const (
	startWithin = proc.StartWithin
	stopWithin  = proc.StopWithin
	soon        = proc.Soon
	pollEvery   = 20 * time.Millisecond
)

// process is a program that a test started; see package proc.
type process struct {
	*proc.Process
	out *output
}

type output = proc.Output

// program describes a program to start.
type program struct {
	name string // in messages; if empty, the base of path
	path string
	args []string
	env  []string // in addition to the test's environment, without variables that configure Callyard
	dir  string
}

// start starts the program.
func start(t testing.TB, p program) *process {
	t.Helper()
	started := proc.Start(t, proc.Program{Name: p.name, Path: p.path, Args: p.args, Env: p.env, Dir: p.dir})
	return &process{started, started.Out}
}

func cleanEnviron() []string { return proc.CleanEnviron() }

func endsWithUs() *syscall.SysProcAttr { return proc.EndsWithUs() }

func (p *process) pid() int { return p.PID() }

func (p *process) ended() bool { return p.Ended() }

func (p *process) wait(t testing.TB, within time.Duration) int {
	t.Helper()
	return p.Wait(t, within)
}

func (p *process) signal(t testing.TB, s syscall.Signal) {
	t.Helper()
	p.Signal(t, s)
}

func (p *process) stop(t testing.TB) {
	t.Helper()
	p.Stop(t)
}

func (p *process) kill9(t testing.TB) {
	t.Helper()
	p.Kill9(t)
}

func (p *process) says(t testing.TB, pattern string) []string {
	t.Helper()
	return p.Says(t, pattern)
}

func (p *process) eventually(t testing.TB, within time.Duration, what string, check func() error) {
	t.Helper()
	p.Eventually(t, within, what, check)
}

// eventually repeats check until it returns no error.
func eventually(t testing.TB, within time.Duration, what string, check func() error) {
	t.Helper()
	proc.Eventually(t, within, what, check)
}
