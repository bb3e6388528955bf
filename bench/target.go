package bench

import "context"

// Target runs the tool echo. Its methods are not called concurrently, but the lanes that it
// dials are.
type Target interface {
	// Name is the name of the target in tables and options.
	Name() string
	// Dial returns lane number n for calls of size bytes. The lane's calls fail
	// once ctx has ended.
	Dial(ctx context.Context, n, size int) (Lane, error)
	// PIDs returns the processes whose CPU time belongs to the target, by name.
	// Their descendants count as "tool server". It is nil if unknown.
	PIDs() map[string]int
	// Close stops the processes that the target started and waits for them.
	Close() error
}

// Lane makes one call at a time. It belongs to one goroutine.
type Lane interface {
	// Call makes one call and returns nil if the whole message was returned.
	Call() error
	Close() error
}
