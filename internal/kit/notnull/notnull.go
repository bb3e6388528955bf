// Package notnull replaces nil lists and maps with empty ones, so that they are [] and {} in JSON
// and not null.
//
// Values that are not nil are returned unchanged. Elements are not inspected.
package notnull

// List returns the list, or an empty one for nil.
func List[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// Map returns the map, or an empty one for nil.
func Map[K comparable, V any](m map[K]V) map[K]V {
	if m == nil {
		return map[K]V{}
	}
	return m
}
