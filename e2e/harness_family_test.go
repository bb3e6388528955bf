package e2e

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// descendants returns the direct and indirect children of pid, sorted.
func descendants(t testing.TB, pid int) []int {
	t.Helper()
	parents, err := processes()
	if err != nil {
		t.Fatal(err)
	}
	var found []int
	for next := []int{pid}; len(next) > 0; {
		parent := next[0]
		next = next[1:]
		for child, p := range parents {
			if p == parent {
				found = append(found, child)
				next = append(next, child)
			}
		}
	}
	slices.Sort(found)
	return found
}

// gone waits until none of the processes is alive.
func gone(t testing.TB, within time.Duration, what string, pids []int) {
	t.Helper()
	eventually(t, within, what+" are to be gone", func() error {
		for _, pid := range pids {
			if alive(pid) {
				return fmt.Errorf("process %d is alive", pid)
			}
		}
		return nil
	})
}
