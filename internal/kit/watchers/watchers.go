// Package watchers holds callbacks for changes: of all objects, or of one by its ID. A change of
// one object costs nothing for the watchers of others, regardless of their number.
//
// It starts no goroutine and calls no callback: the caller that detects a change calls the results
// of [Set.Of], outside its own locks.
package watchers

import "sync"

// Set is a set of callbacks that take a T. The zero value is empty. It is safe for
// concurrent use.
type Set[T any] struct {
	mu sync.RWMutex
	by map[string]map[*func(T)]struct{} // by watched ID; "" means every ID
}

// Add adds f for an ID, or for every ID if it is empty. The returned function removes f, which may
// still be running then.
func (s *Set[T]) Add(id string, f func(T)) (remove func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.by == nil {
		s.by = make(map[string]map[*func(T)]struct{})
	}
	if s.by[id] == nil {
		s.by[id] = make(map[*func(T)]struct{})
	}
	s.by[id][&f] = struct{}{}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if delete(s.by[id], &f); len(s.by[id]) == 0 {
			delete(s.by, id)
		}
	}
}

// Of returns the callbacks for a change of the ID, in no particular order.
func (s *Set[T]) Of(id string) []func(T) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	fs := make([]func(T), 0, len(s.by[""])+len(s.by[id]))
	for f := range s.by[""] {
		fs = append(fs, *f)
	}
	for f := range s.by[id] {
		fs = append(fs, *f)
	}
	return fs
}
