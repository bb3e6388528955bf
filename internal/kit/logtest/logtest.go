// Package logtest collects the log of the code that a test runs.
package logtest

import (
	"strings"
	"sync"
)

// Log can be read while it is written.
type Log struct {
	mu sync.Mutex
	b  strings.Builder
}

// Write implements [io.Writer].
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// String returns what has been written so far.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// Count returns how often text has been written.
func (l *Log) Count(text string) int { return strings.Count(l.String(), text) }
