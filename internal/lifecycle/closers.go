package lifecycle

import "slices"

// Closers close what a part has opened so far, the last first: when a later step of its
// start fails, and at its end. The zero value is ready.
type Closers []func()

// Add has closeIt called by Close.
func (c *Closers) Add(closeIt func()) { *c = append(*c, closeIt) }

// Close closes everything that was added, once.
func (c *Closers) Close() {
	opened := *c
	*c = nil
	for _, closeIt := range slices.Backward(opened) {
		closeIt()
	}
}
