package session

import (
	"io"
	"os"
	"time"
)

// Program is a program that serves: a child process, or what runs in a container.
// Its methods are safe for concurrent use.
type Program interface {
	// PID is its process id, 0 where it has none on this machine.
	PID() int
	// Done is closed when it has ended and nothing is left of it.
	Done() <-chan struct{}
	// Err says how it ended, as in "exited with code 3"; nil until Done is closed.
	Err() error
	// StderrTail is the end of what it wrote to stderr.
	StderrTail() string
	// Stop closes stdin, gives it time to end, then ends it and waits for that.
	// It closes stdout. It may be called more than once.
	Stop(grace time.Duration)
}

// Process is a running program with our ends of its standard streams.
type Process struct {
	Program
	Stdin  io.WriteCloser
	Stdout *os.File
}
