package proc

import (
	"bytes"
	"strings"
	"sync"
)

// Output stores the output of a process. It is safe for concurrent use.
type Output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write appends p.
func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

// String returns the whole output.
func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// Tail returns the end of the output: whole lines of at most n bytes.
func (o *Output) Tail(n int) string {
	text := o.String()
	if len(text) <= n {
		return text
	}
	text = text[len(text)-n:]
	_, text, _ = strings.Cut(text, "\n")
	return "…\n" + text
}
