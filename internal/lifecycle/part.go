package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// DefaultGrace is how long a part without a grace of its own may take to stop.
const DefaultGrace = 10 * time.Second

// Part is one thing that a process runs.
type Part struct {
	// Name is what logs and errors call it.
	Name string
	// Start brings the part up and returns when it is ready. Its context is cancelled when
	// the run is to stop before Start returned, and when the run has ended; a part may
	// hold on to it. Nil means there is nothing to start.
	Start func(ctx context.Context) error
	// Stop brings the part down and returns when it is. Its context ends with the
	// grace. It is called once, and only when Start returned nil. Nil means there
	// is nothing to stop.
	Stop func(ctx context.Context) error
	// Grace is how long Stop may take; zero means [DefaultGrace].
	Grace time.Duration
	// Failed delivers the error of a part that cannot continue, from when Start returned
	// until Stop is called. Closing it, or sending nil, says that the part ended without
	// being asked to, which is a failure too. Nil means that the part never says so.
	Failed <-chan error
}

func (p *Part) grace() time.Duration {
	if p.Grace > 0 {
		return p.Grace
	}
	return DefaultGrace
}

// Forced is the error of a run that a second signal ended: parts may still be
// running, and the process is to exit now.
type Forced struct {
	Signal os.Signal
	// Part is the part that was being started or stopped.
	Part string
}

// Error names the signal and the part that was waited for.
func (f *Forced) Error() string {
	return fmt.Sprintf("stopped immediately by a second signal (%v) while waiting for %s", f.Signal, f.Part)
}

// ExitCode returns the exit code of a process whose [Run] returned err: 0 for
// nil, 128 and the signal's number for [Forced] (130 for SIGINT, 143 for
// SIGTERM), else 1.
func ExitCode(err error) int {
	if err == nil {
		return 0
	}
	var forced *Forced
	if errors.As(err, &forced) {
		if number, ok := forced.Signal.(syscall.Signal); ok {
			return 128 + int(number)
		}
	}
	return 1
}
