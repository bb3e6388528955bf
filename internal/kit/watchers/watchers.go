// Package watchers keeps the functions that want to hear of changes: of all things, or of
// one by its id. A change of one thing costs nothing to those who watch others, however
// many they are.
//
// It starts no goroutine and calls nobody: whoever sees a change calls what [Set.Of]
// returns, outside its own locks.
package watchers

import "sync"

// Set is a set of functions that take a T. The zero value is empty. It is safe for
// concurrent use.
type Set[T any] struct {
	mu sync.RWMutex
	by map[string]map[*func(T)]struct{} // by the id that is watched; "" is every id
}

// Add puts f into the set, for the id, or for every id where that is empty. The function
// that it returns takes f out again; f may be running then.
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

// Of returns the functions that are to hear of a change of the id, in no order.
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
