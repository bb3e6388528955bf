package format

import (
	"slices"
	"strings"
)

// Fold returns the name in lower case, with one underscore for each run of hyphens,
// underscores, dots and spaces.
func Fold(name string) string {
	var b strings.Builder
	b.Grow(len(name))
	separated := false
	for _, r := range strings.ToLower(name) {
		switch r {
		case '-', '_', '.', ' ':
			if !separated {
				b.WriteByte('_')
			}
			separated = true
		default:
			b.WriteRune(r)
			separated = false
		}
	}
	return b.String()
}

// Folding finds values by name, ignoring letter case and the choice of separators. The zero value
// is empty. It is safe for concurrent use once no more names are added.
type Folding[T comparable] struct{ by map[string][]T }

// Add adds v under a name.
func (f *Folding[T]) Add(name string, v T) {
	if f.by == nil {
		f.by = make(map[string][]T)
	}
	if key := Fold(name); !slices.Contains(f.by[key], v) {
		f.by[key] = append(f.by[key], v)
	}
}

// Find returns the values with that name after [Fold], with or without the namespace that models
// put before names. The result must not be changed.
func (f *Folding[T]) Find(name string) []T {
	if len(name) > maxWrittenName {
		return nil
	}
	key := Fold(name)
	if found := f.by[key]; len(found) > 0 {
		return found
	}
	for _, prefix := range namespaces {
		rest, ok := strings.CutPrefix(key, Fold(prefix))
		if found := f.by[rest]; ok && len(found) > 0 {
			return found
		}
	}
	return nil
}
