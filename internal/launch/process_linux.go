package launch

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// process is a started process whose end can be waited for without a thread and
// without reaping it.
type process struct {
	*os.Process
	pidfd *os.File // nil where the kernel has none
}

// startProcess is [os.StartProcess] with a file that becomes readable when the
// process ends. attr.Sys must be set.
func startProcess(path string, argv []string, attr *os.ProcAttr) (*process, error) {
	pidfd := -1
	attr.Sys.PidFD = &pidfd
	p, err := os.StartProcess(path, argv, attr)
	if err != nil {
		return nil, err
	}
	proc := &process{Process: p}
	if pidfd >= 0 {
		// Only a non-blocking descriptor is given to the runtime's poller.
		_ = syscall.SetNonblock(pidfd, true)
		proc.pidfd = os.NewFile(uintptr(pidfd), "pidfd")
	}
	return proc, nil
}

// awaitExit returns when the process has ended. It leaves it to be reaped by
// Wait, which then does not block. It is called once.
func (p *process) awaitExit() {
	if p.pidfd != nil {
		defer p.pidfd.Close()
		if conn, err := p.pidfd.SyscallConn(); err == nil {
			if conn.Read(func(uintptr) bool { return p.ended(unix.WNOHANG) }) == nil {
				return
			}
		}
	}
	p.ended(0) // costs a thread for as long as the process lives
}

// ended says whether the process has ended. An error can only mean that there is
// nothing left to wait for.
func (p *process) ended(flags int) bool {
	for {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_PID, p.Pid, &info, unix.WEXITED|unix.WNOWAIT|flags, nil)
		if !errors.Is(err, unix.EINTR) {
			return err != nil || info.Signo != 0
		}
	}
}

// setPipeSize sets the size of a pipe's buffer and says whether that worked.
func setPipeSize(f *os.File, size int) bool {
	ok := false
	control(f, func(fd int) {
		_, err := unix.FcntlInt(uintptr(fd), unix.F_SETPIPE_SZ, size)
		ok = err == nil
	})
	return ok
}

// unread returns how many bytes wait in a pipe.
func unread(f *os.File) int {
	n := 0
	control(f, func(fd int) {
		n, _ = unix.IoctlGetInt(fd, unix.TIOCINQ)
	})
	return n
}

// control calls do with the descriptor of f, which it leaves non-blocking. It
// does nothing when f is closed.
func control(f *os.File, do func(fd int)) {
	if conn, err := f.SyscallConn(); err == nil {
		_ = conn.Control(func(fd uintptr) { do(int(fd)) })
	}
}

// ownProgram is the path by which this very program can be started again, also
// after its file was replaced.
func ownProgram() (string, error) { return "/proc/self/exe", nil }
