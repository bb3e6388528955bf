package config

import (
	"reflect"
	"slices"
	"strings"
)

// FileKey is a key that names a file, with its value.
type FileKey struct{ Path, File string }

// FileKeys returns the keys that end in "_file" and are set in a target of [Load], sorted by path.
func FileKeys(into any) ([]FileKey, error) {
	_, settings, err := keysOf(into)
	if err != nil {
		return nil, err
	}
	var found []FileKey
	for i := range settings {
		s := &settings[i]
		if !strings.HasSuffix(s.path, "_file") || s.typ.Kind() != reflect.String {
			continue
		}
		if file := s.value().String(); file != "" {
			found = append(found, FileKey{s.path, file})
		}
	}
	slices.SortFunc(found, func(a, b FileKey) int { return strings.Compare(a.Path, b.Path) })
	return found, nil
}

// Differing returns the keys whose values differ between two targets of [Load], sorted by path.
// a and b have the same type.
func Differing(a, b any) ([]string, error) {
	var values [2]map[string]reflect.Value
	for i, into := range []any{a, b} {
		_, settings, err := keysOf(into)
		if err != nil {
			return nil, err
		}
		values[i] = make(map[string]reflect.Value, len(settings))
		for j := range settings {
			values[i][settings[j].path] = settings[j].value()
		}
	}
	var keys []string
	for key, value := range values[1] {
		if was, ok := values[0][key]; !ok || !reflect.DeepEqual(was.Interface(), value.Interface()) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys, nil
}
