// Package polltest waits in tests for conditions that send no signal, such as what another process
// or another subscriber does. A test that can receive a signal must not poll.
package polltest

import (
	"testing"
	"time"
)

// Until fails the test if the condition, which what names, is not met within a minute.
func Until(t testing.TB, what string, met func() bool) {
	t.Helper()
	Within(t, time.Minute, what, met)
}

// Within is Until with another limit, such as a time that the code under test promises.
func Within(t testing.TB, limit time.Duration, what string, met func() bool) {
	t.Helper()
	late := time.NewTimer(limit)
	defer late.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !met() {
		select {
		case <-tick.C:
		case <-late.C:
			t.Fatalf("not within %s: %s", limit, what)
		}
	}
}
