package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// DefaultGrace is the grace period of a part that does not set one.
const DefaultGrace = 10 * time.Second

// Part is a component of a process.
type Part struct {
	// Name identifies the part in logs and errors.
	Name string
	// Start starts the part and returns when it is ready. Its context is cancelled if the run should
	// stop before Start has returned, and when the run has ended. The part may keep the context. If
	// Start is nil, there is nothing to start.
	Start func(ctx context.Context) error
	// Stop stops the part and returns when it has stopped. Its context ends with the grace period.
	// Stop is called once, and only if Start returned nil. If Stop is nil, there is nothing to stop.
	Stop func(ctx context.Context) error
	// Grace is the time that Stop may take; 0 means [DefaultGrace].
	Grace time.Duration
	// Failed delivers the error of a part that cannot continue, between the return of Start and the
	// call of Stop. Closing the channel, or sending nil, means that the part ended unexpectedly, which
	// is a failure too. If Failed is nil, the part never reports a failure.
	Failed <-chan error
}

func (p *Part) grace() time.Duration {
	if p.Grace > 0 {
		return p.Grace
	}
	return DefaultGrace
}

// Forced is the error of a run that a second signal ended. Parts may still be running, and the process
// should exit now.
type Forced struct {
	Signal os.Signal
	// Part is the part that was being started or stopped.
	Part string
}

// Error names the signal and the part that Run was waiting for.
func (f *Forced) Error() string {
	return fmt.Sprintf("stopped immediately by a second signal (%v) while waiting for %s", f.Signal, f.Part)
}

// ExitCode returns the exit code of a process whose [Run] returned err: 0 for nil, 128 plus the
// number of the signal for [Forced] (130 for SIGINT, 143 for SIGTERM), otherwise 1.
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
