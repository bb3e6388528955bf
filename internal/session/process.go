package session

import (
	"io"
	"os"
	"time"
)

// Program is a program that serves MCP: a child process, or a process in a container. Its methods
// are safe for concurrent use.
type Program interface {
	// PID returns its process id, or 0 if it has none on this machine.
	PID() int
	// Done is closed when the program has ended and nothing of it is left.
	Done() <-chan struct{}
	// Err returns how the program ended, as in "exited with code 3". Before Done is closed it is
	// nil, or the reason why the program is being killed.
	Err() error
	// StderrTail returns the end of the program's stderr.
	StderrTail() string
	// Stop closes stdin, waits up to grace for the program to end, then kills it and waits.
	// It closes stdout. It may be called more than once.
	Stop(grace time.Duration)
}

// Process is a running program with our ends of its standard streams.
type Process struct {
	Program
	Stdin  io.WriteCloser
	Stdout *os.File
}
