package mcp

import (
	"testing"
	"time"
)

func TestARepeatedFaultIsLoggedOncePerIntervalWithItsCount(t *testing.T) {
	var s seldom
	start := time.Now()
	for _, c := range []struct {
		after time.Duration
		want  int
	}{{0, 1}, {time.Second, 0}, {2 * time.Second, 0}, {seldomEvery, 3}, {seldomEvery + time.Second, 0}, {3 * seldomEvery, 2}} {
		if n := s.count(start.Add(c.after)); n != c.want {
			t.Errorf("after %s: %d, want %d", c.after, n, c.want)
		}
	}
}
