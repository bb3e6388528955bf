// Package sleep waits for some time, or less when there is no point in waiting on.
package sleep

import "time"

// For waits for d and reports whether all of it has passed: false where done was closed, or
// has a value, before.
func For(d time.Duration, done <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-done:
		return false
	}
}
