package proc

import (
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// slowOutput accepts nothing until the process has ended.
type slowOutput struct {
	Output
	ended <-chan struct{}
}

func (o *slowOutput) Write(p []byte) (int, error) {
	<-o.ended
	return o.Output.Write(p)
}

// The reader of the output stands still when the process ends, as on a busy machine. A child
// of the process has the output open.
func TestOutputOfAnEndedProcessIsComplete(t *testing.T) {
	const size = 60_000 // less than a pipe holds, and more than is read at once
	ended := make(chan struct{})
	out := &slowOutput{ended: ended}
	cmd := exec.Command("/bin/sh", "-c", `sleep 600 & echo $!; head -c `+strconv.Itoa(size)+` /dev/zero | tr '\0' x; echo; echo last`)
	c, err := Capture(cmd, out)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	Eventually(t, Soon, "the end of the process", func() error {
		if err := syscall.Kill(cmd.Process.Pid, 0); !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("it is there: %w", err)
		}
		return nil
	})
	close(ended)
	select {
	case <-c.Done:
	case <-time.After(Soon):
		t.Fatal("the end of the process is not seen while its child runs")
	}
	text := out.String()
	child, rest, _ := strings.Cut(text, "\n")
	pid, err := strconv.Atoi(child)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Error(err)
	}
	if want := strings.Repeat("x", size) + "\nlast\n"; rest != want {
		t.Errorf("the output has %d bytes and ends with %q; the process wrote %d bytes", len(rest), rest[max(0, len(rest)-10):], len(want))
	}
}
