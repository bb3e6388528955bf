package bench

import "context"

// Target is something that runs the tool echo. Its methods are called from one
// goroutine at a time; the lanes that it dials run side by side.
type Target interface {
	// Name is the word for it in tables and options.
	Name() string
	// Dial returns lane number n for calls of size bytes. Its calls end with an
	// error once ctx has ended.
	Dial(ctx context.Context, n, size int) (Lane, error)
	// PIDs gives the processes whose CPU time belongs to the target, by name.
	// What they started is counted as "tool server". Nil where nothing is known.
	PIDs() map[string]int
	// Close stops what the target started and waits for it.
	Close() error
}

// Lane makes one call at a time. It belongs to one goroutine.
type Lane interface {
	// Call makes one call and returns nil when the whole message was returned.
	Call() error
	Close() error
}
