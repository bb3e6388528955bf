// Package notnull makes empty lists and objects of nil ones, so that they are [] and {} in
// JSON and not null.
//
// It promises that what is not nil is returned as it is. It refuses to look into values.
package notnull

// List returns the list; an empty one for nil.
func List[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// Map returns the map; an empty one for nil.
func Map[K comparable, V any](m map[K]V) map[K]V {
	if m == nil {
		return map[K]V{}
	}
	return m
}
