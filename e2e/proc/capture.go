package proc

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// maxPipe is the largest capacity of a pipe on Linux without privileges.
const maxPipe = 1 << 20

// Captured is a process whose output is copied.
type Captured struct {
	Done <-chan struct{} // closed when the process has ended and all that it wrote is copied

	pipe *os.File
	left chan struct{} // closed when nothing is copied anymore
}

// Capture starts cmd and copies its output to out. Children that outlive the process hold the
// output open. They do not delay Done, and their output is copied until they end or [Captured.Close].
func Capture(cmd *exec.Cmd, out io.Writer) (*Captured, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd.Stdout, cmd.Stderr = w, w
	err = cmd.Start()
	_ = w.Close() // the process has its own
	if err != nil {
		_ = r.Close()
		return nil, err
	}
	interrupted, done, left := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(interrupted)
		_, _ = io.Copy(out, r) // until the end of the output, or the deadline
	}()
	go func() {
		defer close(left)
		_ = cmd.Wait() // ProcessState has the result
		_ = r.SetReadDeadline(time.Now())
		<-interrupted
		_ = r.SetReadDeadline(time.Time{})
		drain(out, r)
		close(done)
		_, _ = io.Copy(out, r)
	}()
	return &Captured{done, r, left}, nil
}

// Ended reports whether Done is closed.
func (c *Captured) Ended() bool {
	select {
	case <-c.Done:
		return true
	default:
		return false
	}
}

// Close waits for the end of the process and stops copying the output of its children.
func (c *Captured) Close() {
	<-c.Done
	_ = c.pipe.Close()
	<-c.left
}

// drain copies what is in the pipe now.
func drain(out io.Writer, r *os.File) {
	raw, err := r.SyscallConn()
	if err != nil {
		return
	}
	buffer := make([]byte, 64<<10)
	_ = raw.Read(func(fd uintptr) bool {
		for copied := 0; copied < maxPipe; { // children may write more all the time
			n, err := syscall.Read(int(fd), buffer)
			if errors.Is(err, syscall.EINTR) {
				continue
			}
			if n <= 0 {
				break
			}
			_, _ = out.Write(buffer[:n])
			copied += n
		}
		return true
	})
}
