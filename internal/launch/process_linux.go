package launch

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// process is a started process. Waiting for its end needs no thread and does not reap it.
type process struct {
	*os.Process
	pidfd *os.File // nil if the kernel does not support pidfd
}

// startProcess is [os.StartProcess] with a file that becomes readable when the process ends. attr.Sys
// must be set.
func startProcess(path string, argv []string, attr *os.ProcAttr) (*process, error) {
	pidfd := -1
	attr.Sys.PidFD = &pidfd
	p, err := os.StartProcess(path, argv, attr)
	if err != nil {
		return nil, err
	}
	proc := &process{Process: p}
	if pidfd >= 0 {
		// The runtime's poller accepts only non-blocking descriptors.
		_ = syscall.SetNonblock(pidfd, true)
		proc.pidfd = os.NewFile(uintptr(pidfd), "pidfd")
	}
	return proc, nil
}

// awaitExit returns when the process has ended. It does not reap it; Wait does, without blocking. Call
// it once.
func (p *process) awaitExit() {
	if p.pidfd != nil {
		defer p.pidfd.Close()
		if conn, err := p.pidfd.SyscallConn(); err == nil {
			if conn.Read(func(uintptr) bool { return p.ended(unix.WNOHANG) }) == nil {
				return
			}
		}
	}
	p.ended(0) // blocks a thread while the process lives
}

// ended reports whether the process has ended. An error can only mean that there is nothing to wait
// for.
func (p *process) ended(flags int) bool {
	for {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_PID, p.Pid, &info, unix.WEXITED|unix.WNOWAIT|flags, nil)
		if !errors.Is(err, unix.EINTR) {
			return err != nil || info.Signo != 0
		}
	}
}

// setPipeSize sets the size of a pipe's buffer and reports whether that worked.
func setPipeSize(f *os.File, size int) bool {
	ok := false
	control(f, func(fd int) {
		_, err := unix.FcntlInt(uintptr(fd), unix.F_SETPIPE_SZ, size)
		ok = err == nil
	})
	return ok
}

// unread returns the number of bytes in a pipe.
func unread(f *os.File) int {
	n := 0
	control(f, func(fd int) {
		n, _ = unix.IoctlGetInt(fd, unix.TIOCINQ)
	})
	return n
}

// control calls do with the descriptor of f, which stays non-blocking. It does nothing if f is closed.
func control(f *os.File, do func(fd int)) {
	if conn, err := f.SyscallConn(); err == nil {
		_ = conn.Control(func(fd uintptr) { do(int(fd)) })
	}
}

// ownProgram returns a path of this program that stays valid after its file was replaced.
func ownProgram() (string, error) { return "/proc/self/exe", nil }
