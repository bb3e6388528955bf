package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// validator is a struct that checks itself; its paths count from itself.
type validator interface{ Validate() []Fault }

// validate asks everything that was filled for its own faults, and gives them
// the place at which the key stands, or the nearest key above it.
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

// sortedKeys are the keys of a map, which are texts, in their order.
func sortedKeys(m reflect.Value) []reflect.Value {
	keys := m.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	return keys
}

// ask calls Validate of v, where it has one. read is how many faults the reading
// found: a key with one of those still has its default, about which nothing is
// said.
func (d *decoder) ask(path string, v reflect.Value, read int) {
	check, ok := v.Interface().(validator)
	if !ok {
		// The method may have a pointer receiver, and v may be the value of a map.
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
