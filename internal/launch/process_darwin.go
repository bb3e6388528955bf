package launch

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// macOS has process groups and kqueue but no /proc, so a process that leaves its group is not found.

// process is a started process. Waiting for its end does not reap it.
type process struct{ *os.Process }

// startProcess is [os.StartProcess].
func startProcess(path string, argv []string, attr *os.ProcAttr) (*process, error) {
	p, err := os.StartProcess(path, argv, attr)
	if err != nil {
		return nil, err
	}
	return &process{p}, nil
}

// awaitExit returns when the process has ended. It does not reap it; Wait does, without blocking. It
// blocks a thread.
func (p *process) awaitExit() {
	queue, err := unix.Kqueue()
	if err != nil {
		return // Wait blocks instead; only the order of the cleanup changes
	}
	defer unix.Close(queue)
	var change [1]unix.Kevent_t
	unix.SetKevent(&change[0], p.Pid, unix.EVFILT_PROC, unix.EV_ADD|unix.EV_ONESHOT)
	change[0].Fflags = unix.NOTE_EXIT
	var event [1]unix.Kevent_t
	for {
		// ESRCH: it ended before this call.
		if _, err := unix.Kevent(queue, change[:], event[:], nil); err != unix.EINTR {
			return
		}
	}
}

func setPipeSize(*os.File, int) bool { return false } // pipes grow automatically

// unread returns the number of bytes in a pipe.
func unread(f *os.File) int {
	const fionread = 0x4004667f
	n := 0
	if conn, err := f.SyscallConn(); err == nil {
		_ = conn.Control(func(fd uintptr) { n, _ = unix.IoctlGetInt(int(fd), fionread) })
	}
	return n
}

// ownProgram returns the path of this program.
func ownProgram() (string, error) { return os.Executable() }

// identity would identify a process permanently; macOS has no way to do that.
type identity struct{}

func treeOf(int) []identity { return nil }

func killTree([]identity) {}

// killMatching does nothing on macOS.
func killMatching(match func(cookie []byte) bool, limit time.Duration) {}
