package risk

import (
	"fmt"
	"os"
	"sync/atomic"
)

// Holder holds the policy in force and replaces it as a whole. A call is judged by one
// version, whatever is put in force meanwhile. Use NewHolder; it is safe for concurrent
// use.
type Holder struct {
	current atomic.Pointer[Policy]
}

// NewHolder returns a Holder of p; nil stands for [Default].
func NewHolder(p *Policy) *Holder {
	if p == nil {
		p = Default()
	}
	h := &Holder{}
	h.current.Store(p)
	return h
}

// Current returns the policy in force. Take it once for each call.
func (h *Holder) Current() *Policy { return h.current.Load() }

// Replace puts p in force.
func (h *Holder) Replace(p *Policy) { h.current.Store(p) }

// ReadFile reads the policy at path. The error is *[Faults] where the file has faults.
func ReadFile(path string) (*Policy, error) {
	source, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the policy: %w", err)
	}
	return Parse(source, path)
}
