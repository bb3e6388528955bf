package config

import (
	"reflect"
	"slices"
	"strings"
)

// FileKey is a key that names a file, with its value.
type FileKey struct{ Path, File string }

// FileKeys returns the keys of what [Load] filled that end in "_file" and are set, in
// the order of their paths.
func FileKeys(into any) ([]FileKey, error) {
	sections, err := sectionsOf(into)
	if err != nil {
		return nil, err
	}
	settings, err := settingsOf(sections)
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
