package warrant

import (
	"bytes"
	"sync"
)

// made remembers the last warrants that were signed in this process and not used
// yet. A warrant that is one of them to the byte was signed with the key that it
// names: verifying the signature could say nothing else, and takes longer than
// everything else that the process does to let an approved call run.
type made struct {
	mu    sync.Mutex
	texts [256][]byte
	next  int
}

func (m *made) put(text []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.texts[m.next] = bytes.Clone(text) // the caller may change what it has
	m.next = (m.next + 1) % len(m.texts)
}

// take says whether the warrant was made here, once; nil remembers nothing.
func (m *made) take(text []byte) bool {
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
