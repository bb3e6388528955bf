package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// validator is a struct that checks itself. Its paths are relative to itself.
type validator interface{ Validate() []Fault }

// validate collects the faults of every filled section and adds the place of each key, or of the
// nearest key above it.
func (d *decoder) validate(into any, sections []section) {
	read := len(d.faults.list)
	if _, isMap := into.(map[string]any); !isMap {
		d.ask("", reflect.ValueOf(into).Elem(), read)
	}
	for _, s := range sections {
		d.walk(s.key, s.value, read, 0)
	}
}

func (d *decoder) walk(path string, v reflect.Value, read, depth int) {
	if depth > maxDepth {
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			d.walk(path, v.Elem(), read, depth+1)
		}
	case reflect.Struct:
		d.ask(path, v, read)
		if isText(v.Type()) {
			return
		}
		for _, s := range sectionsIn(v) {
			d.walk(join(path, s.key), s.value, read, depth+1)
		}
	case reflect.Slice:
		for i := range v.Len() {
			d.walk(fmt.Sprintf("%s[%d]", path, i), v.Index(i), read, depth+1)
		}
	case reflect.Map:
		for _, key := range sortedKeys(v) {
			d.walk(joinName(path, key.String()), v.MapIndex(key), read, depth+1)
		}
	}
}

// sortedKeys returns the string keys of a map in order.
func sortedKeys(m reflect.Value) []reflect.Value {
	keys := m.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	return keys
}

// ask calls Validate of v if it has one. read is the number of faults found while reading. A key
// with such a fault still has its default, so ask drops further faults of it.
func (d *decoder) ask(path string, v reflect.Value, read int) {
	check, ok := v.Interface().(validator)
	if !ok {
		// The method may have a pointer receiver, and a map value is not addressable.
		fresh := reflect.New(v.Type())
		fresh.Elem().Set(v)
		if check, ok = fresh.Interface().(validator); !ok {
			return
		}
	}
	known := report{list: d.faults.list[:read]}
	for _, f := range check.Validate() {
		full := join(path, f.Path)
		if full != "" && known.has(full) {
			continue
		}
		d.faults.add(d.places.find(full), full, "%s", f.Message)
	}
}
