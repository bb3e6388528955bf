package chaos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// process is a running program. Its output goes to a file.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
}

// launch starts a program and appends its output to the file log.
func launch(path string, args, env []string, log string) (*process, error) {
	out, err := os.OpenFile(log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the log of %s: %w", path, err)
	}
	defer out.Close() // the process has its own copy
	cmd := exec.Command(path, args...)
	cmd.Env = append(cleanEnviron(), env...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = endsWithUs()
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", path, err)
	}
	p := &process{cmd: cmd, done: make(chan struct{})}
	go func() { // ends with the process; kill and end wait for it
		defer close(p.done)
		_ = cmd.Wait() // the reason is in its log
	}()
	return p, nil
}

// cleanEnviron returns our environment without variables that configure Callyard.
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

// kill kills the process with SIGKILL.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // fails only if it has ended
	<-p.done
}

// end terminates the process gracefully, and kills it after the timeout.
func (p *process) end(within time.Duration) {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	late := time.NewTimer(within)
	defer late.Stop()
	select {
	case <-p.done:
	case <-late.C:
		p.kill()
	}
}

// slot is a place in the fleet, whose process is restarted after it was killed.
type slot struct {
	name      string
	program   string
	args, env []string
	log       string
	before    func() error // runs before each start; may be nil
	at        string       // its listen address, from its own view
	ready     func(context.Context) error
	host      *host  // the host on which it runs; nil means this machine
	clock     *clock // its own clock; nil means that of the machine

	mu   sync.Mutex
	proc *process
	up   bool // it has been ready since its start, and is not stopped
}

// spawn starts the process on its host.
func (s *slot) spawn() (p *process, err error) {
	if s.before != nil {
		if err := s.before(); err != nil {
			return nil, err
		}
	}
	err = s.host.inside(func() error {
		p, err = launch(s.program, s.args, s.env, s.log)
		return err
	})
	return p, err
}

// address returns the address at which the rest of the fleet reaches the process.
func (s *slot) address(port int) string {
	if s.host == nil {
		return loopback(port)
	}
	return fmt.Sprintf("%s:%d", s.host.at, port)
}

var errEnded = errors.New("it ended by itself; its log says why")

// start starts the process and waits until it is ready. If it ends before that, start
// starts it again, because its dependencies may be down.
func (s *slot) start(ctx context.Context) error {
	for {
		p, err := s.spawn()
		if err != nil {
			return err
		}
		s.mu.Lock()
		s.proc = p
		s.mu.Unlock()
		err = s.await(ctx, p)
		if err == nil || ctx.Err() != nil {
			return err
		}
		select {
		case <-time.After(startPause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

const (
	startPause = 200 * time.Millisecond
	readyLook  = 25 * time.Millisecond
)

// await waits until the process is ready.
func (s *slot) await(ctx context.Context, p *process) error {
	tick := time.NewTicker(readyLook)
	defer tick.Stop()
	var last error
	for {
		select {
		case <-p.done:
			return errEnded
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready: %w", s.name, errors.Join(ctx.Err(), last))
		case <-tick.C:
		}
		look, cancel := context.WithTimeout(ctx, time.Second)
		last = s.ready(look)
		cancel()
		if last == nil {
			s.mu.Lock()
			s.up = s.proc == p
			s.mu.Unlock()
			return nil
		}
	}
}

func (s *slot) isUp() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.up
}

// kill kills the process.
func (s *slot) kill() {
	s.mu.Lock()
	p := s.proc
	s.up = false
	s.mu.Unlock()
	if p != nil {
		p.kill()
	}
}

// freeze stops the process with SIGSTOP.
func (s *slot) freeze() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.up = false
	return s.proc.cmd.Process.Signal(syscall.SIGSTOP)
}

// away records that the process exists but cannot work.
func (s *slot) away() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.up = false
}

// back waits until a process that was away works again.
func (s *slot) back(ctx context.Context) error {
	s.mu.Lock()
	p := s.proc
	s.mu.Unlock()
	err := s.await(ctx, p)
	if errors.Is(err, errEnded) {
		return s.start(ctx)
	}
	return err
}

// thaw continues a frozen process, and waits until it is ready.
func (s *slot) thaw(ctx context.Context) error {
	s.mu.Lock()
	p := s.proc
	err := p.cmd.Process.Signal(syscall.SIGCONT)
	s.mu.Unlock()
	if err == nil {
		err = s.await(ctx, p)
	}
	if errors.Is(err, errEnded) || errors.Is(err, os.ErrProcessDone) {
		return s.start(ctx)
	}
	return err
}

// end stops the process gracefully.
func (s *slot) end(within time.Duration) {
	s.mu.Lock()
	p := s.proc
	s.up = false
	s.mu.Unlock()
	if p != nil {
		p.end(within)
	}
}
