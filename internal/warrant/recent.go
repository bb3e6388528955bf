package warrant

import (
	"bytes"
	"sync"
)

// recentWarrants remembers the last warrants that were signed in this process and not used yet. A warrant
// that equals one of them byte by byte was signed with the key that it names. Verifying its
// signature again would be redundant, and takes longer than all other work of the process for an
// approved call.
type recentWarrants struct {
	mu    sync.Mutex
	texts [256][]byte
	next  int
}

func (m *recentWarrants) put(text []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.texts[m.next] = bytes.Clone(text) // the caller may change its slice
	m.next = (m.next + 1) % len(m.texts)
}

// take reports whether the warrant was signed here, and forgets it. A nil receiver returns false.
func (m *recentWarrants) take(text []byte) bool {
	if m == nil {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, t := range m.texts {
		if t != nil && bytes.Equal(t, text) {
			m.texts[i] = nil
			return true
		}
	}
	return false
}
