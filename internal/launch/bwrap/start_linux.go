//go:build amd64 || arm64

package bwrap

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"github.com/callyard/callyard/internal/launch"
	"github.com/callyard/callyard/pkg/schema"
)

const supported = true

// firstUser and users are the range of user ids of sandboxes if the worker is root, because root is
// exempt from the limit of processes and could read everything.
const (
	firstUser = 60000
	users     = 4000
	setUp     = 20 * time.Second // start time of bwrap on a busy machine
	mostInfo  = 4096
)

// handle identifies a process even after its pid was reused.
type handle struct{ pidfd int }

func (h handle) kill()  { _ = unix.PidfdSendSignal(h.pidfd, unix.SIGKILL, nil, 0) } // a process that has ended is not an error
func (h handle) close() { _ = unix.Close(h.pidfd) }

// Start starts a sandbox with its limits applied. The caller must call [Process.Stop] in the end. The
// sandbox is killed after Spec.Time. The error is a *schema.Error; nothing runs then.
func (m *Maker) Start(ctx context.Context, s Spec) (*Process, error) {
	var ours, theirs []*os.File
	closeAll := func(files []*os.File) {
		for _, f := range files {
			f.Close()
		}
	}
	defer func() { closeAll(ours); closeAll(theirs) }()
	info, infoIn, err := os.Pipe()
	if err != nil {
		return nil, s.fault("creating its pipes", err)
	}
	ours, theirs = append(ours, info), append(theirs, infoIn)
	blockOut, block, err := os.Pipe()
	if err != nil {
		return nil, s.fault("creating its pipes", err)
	}
	ours, theirs = append(ours, block), append(theirs, blockOut)
	filterOut, filterIn, err := os.Pipe()
	if err != nil {
		return nil, s.fault("creating its pipes", err)
	}
	theirs = append(theirs, filterOut)
	_, err = filterIn.Write(filter()) // much less than a pipe holds
	filterIn.Close()
	if err != nil {
		return nil, s.fault("its filter", err)
	}

	binds, err := s.bindsNow()
	if err != nil {
		return nil, launch.Failed("No sandbox of server %q was created, because of its volume: %w.", s.Server, err)
	}
	spec := launch.Spec{ID: schema.ServerID(s.Server), Type: "stdio", Command: m.path, Args: s.args(binds), Env: s.env(), Dir: "/", Files: theirs}
	if os.Geteuid() == 0 {
		spec.User = firstUser + m.count.Add(1)%users
	}
	child, err := m.o.Launcher.Start(spec)
	if err != nil {
		return nil, err
	}
	closeAll(theirs)
	theirs = nil
	p := &Process{Stdin: child.Stdin, Stdout: child.Stdout, child: child, begun: time.Now(), limit: s.Time}
	if err := m.release(ctx, &s, p, spec.User, binds, info, block); err != nil {
		// The waiting process inside does not outlive bwrap.
		child.Stop(0)
		return nil, launch.Failed("The sandbox of server %q could not be created, and the server is not run without one: %w; the last output of bwrap: %q.", s.Server, err, child.StderrTail())
	}
	p.Limit(p.begun.Add(s.Time))
	return p, nil
}

func (s *Spec) fault(what string, err error) error {
	return launch.Failed("The sandbox of server %q could not be created: %s: %w.", s.Server, what, err)
}

// release waits until the sandbox is set up, applies the limits to its first process, which all others
// inherit, and lets the server start.
func (m *Maker) release(ctx context.Context, s *Spec, p *Process, user uint32, binds []bind, info, block *os.File) error {
	until := time.Now().Add(setUp)
	if at, ok := ctx.Deadline(); ok && at.Before(until) {
		until = at
	}
	if err := info.SetReadDeadline(until); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = info.SetReadDeadline(time.Now()) })
	defer stop()
	text, err := io.ReadAll(io.LimitReader(info, mostInfo))
	if err != nil {
		return fmt.Errorf("waiting for bwrap: %w", err)
	}
	var got struct {
		PID int `json:"child-pid"`
	}
	if err := json.Unmarshal(text, &got); err != nil || got.PID <= 1 {
		return errors.New("bwrap ended before the sandbox was ready")
	}
	pidfd, err := unix.PidfdOpen(got.PID, 0)
	if err != nil {
		return fmt.Errorf("finding the sandbox: %w", err)
	}
	p.inner = handle{pidfd}
	if err := as(user, func() error { return s.limits.put(got.PID) }); err != nil {
		p.inner.close()
		return err
	}
	if err := s.stillThere(binds); err != nil {
		p.inner.close()
		return err
	}
	if _, err := block.Write([]byte{1}); err != nil {
		p.inner.close()
		return fmt.Errorf("letting the server start: %w", err)
	}
	return nil
}

// as runs do on a thread with this real user and group id, or with the current ones if user is 0.
// The kernel lets a process of the same user lower the limits of another one. Root needs a
// capability for that, which it may not have.
func as(user uint32, do func() error) error {
	if user == 0 {
		return do()
	}
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		const same = ^uintptr(0)
		become := func(id uintptr) error {
			for _, call := range [...]uintptr{unix.SYS_SETRESGID, unix.SYS_SETRESUID} {
				if _, _, errno := unix.RawSyscall(call, id, same, same); errno != 0 {
					return fmt.Errorf("taking the user %d: %w", id, errno)
				}
			}
			return nil
		}
		err := become(uintptr(user))
		if err == nil {
			err = do()
		}
		if back := become(0); back != nil {
			done <- errors.Join(err, back)
			return // the thread ends with its goroutine
		}
		runtime.UnlockOSThread()
		done <- err
	}()
	return <-done
}

// put sets the limits of a process, which waits in the sandbox and has no children yet.
func (l *limits) put(pid int) error {
	for _, r := range []struct {
		what  int
		value int64
	}{
		{unix.RLIMIT_DATA, l.data}, {unix.RLIMIT_AS, addresses}, {unix.RLIMIT_NPROC, l.processes}, {unix.RLIMIT_NOFILE, l.files},
		{unix.RLIMIT_FSIZE, l.file}, {unix.RLIMIT_CPU, int64(l.cpu / time.Second)}, {unix.RLIMIT_CORE, 0}, {unix.RLIMIT_MEMLOCK, 64 << 10},
		{unix.RLIMIT_MSGQUEUE, 0}, {unix.RLIMIT_SIGPENDING, 256},
	} {
		value := uint64(r.value)
		var old unix.Rlimit
		if err := unix.Prlimit(pid, r.what, nil, &old); err != nil {
			return fmt.Errorf("reading a limit: %w", err)
		}
		value = min(value, old.Max) // the sandbox cannot exceed the limits of the worker itself
		if err := unix.Prlimit(pid, r.what, &unix.Rlimit{Cur: value, Max: value}, nil); err != nil {
			return fmt.Errorf("setting a limit: %w", err)
		}
	}
	return nil
}
