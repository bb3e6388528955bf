package lifecycle

import "slices"

// Closers is a stack of cleanup functions for a part, for use when a later step of its start fails and
// when it stops. The zero value is ready to use.
type Closers []func()

// Add pushes a function for Close to call.
func (c *Closers) Add(closeIt func()) { *c = append(*c, closeIt) }

// Close calls all functions once, in reverse order.
func (c *Closers) Close() {
	opened := *c
	*c = nil
	for _, closeIt := range slices.Backward(opened) {
		closeIt()
	}
}
