package launch

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// macOS has process groups and kqueue, but no /proc: what leaves its group is
// not found there.

// process is a started process whose end can be waited for without reaping it.
type process struct{ *os.Process }

// startProcess is [os.StartProcess].
func startProcess(path string, argv []string, attr *os.ProcAttr) (*process, error) {
	p, err := os.StartProcess(path, argv, attr)
	if err != nil {
		return nil, err
	}
	return &process{p}, nil
}

// awaitExit returns when the process has ended. It leaves it to be reaped by
// Wait, which then does not block. It costs a thread.
func (p *process) awaitExit() {
	queue, err := unix.Kqueue()
	if err != nil {
		return // Wait blocks instead; only the order of cleaning up suffers
	}
	defer unix.Close(queue)
	var change [1]unix.Kevent_t
	unix.SetKevent(&change[0], p.Pid, unix.EVFILT_PROC, unix.EV_ADD|unix.EV_ONESHOT)
	change[0].Fflags = unix.NOTE_EXIT
	var event [1]unix.Kevent_t
	for {
		// ESRCH: it has ended before we asked.
		if _, err := unix.Kevent(queue, change[:], event[:], nil); err != unix.EINTR {
			return
		}
	}
}

func setPipeSize(*os.File, int) bool { return false } // pipes grow by themselves

// unread returns how many bytes wait in a pipe.
func unread(f *os.File) int {
	const fionread = 0x4004667f
	n := 0
	if conn, err := f.SyscallConn(); err == nil {
		_ = conn.Control(func(fd uintptr) { n, _ = unix.IoctlGetInt(int(fd), fionread) })
	}
	return n
}

// ownProgram is the path by which this program can be started again.
func ownProgram() (string, error) { return os.Executable() }

// identity names a process for good; there is no way to here.
type identity struct{}

func treeOf(int) []identity { return nil }

func killTree([]identity) {}

// eradicate finds nothing here.
func eradicate(match func(cookie []byte) bool, limit time.Duration) {}
