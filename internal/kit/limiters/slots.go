package limiters

import "sync"

// Slots limits what is in use at the same time: in total, and per key, so that one key cannot use all
// of it. It is safe for concurrent use.
type Slots[K comparable] struct {
	most, each int

	mu   sync.Mutex
	used int
	by   map[K]int // no zero entries
}

// NewSlots returns slots for at most most in total and each per key.
func NewSlots[K comparable](most, each int) *Slots[K] {
	return &Slots[K]{most: most, each: each, by: make(map[K]int)}
}

// Take takes a slot for the key. It returns false if none is free.
func (s *Slots[K]) Take(key K) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.used >= s.most || s.by[key] >= s.each {
		return false
	}
	s.used++
	s.by[key]++
	return true
}

// Release frees a slot that the key took.
func (s *Slots[K]) Release(key K) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used--
	if s.by[key]--; s.by[key] == 0 {
		delete(s.by, key)
	}
}
