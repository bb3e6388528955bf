// Package sleep provides an interruptible sleep.
package sleep

import "time"

// For waits for d and reports whether it waited that long. It returns false if done is closed or
// has a value earlier.
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
