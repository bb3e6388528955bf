package config

import (
	"fmt"
	"reflect"
	"strings"
)

// Key is one key that a variable can set, and its default as a cell of a table.
type Key struct{ Path, Variable, Default string }

// Keys lists the keys of what Load fills.
func Keys(into any) ([]Key, error) {
	_, list, err := keysOf(into)
	var keys []Key
	for _, s := range list {
		keys = append(keys, Key{s.path, s.variable, cell(s.value())})
	}
	return keys, err
}

func cell(v reflect.Value) string {
	switch v.Kind() {
	case reflect.Slice, reflect.Map, reflect.String:
		if v.Len() == 0 {
			return "none"
		}
	}
	if list, ok := v.Interface().([]string); ok {
		return "`" + strings.Join(list, ", ") + "`"
	}
	return fmt.Sprintf("`%v`", yamlValue(v, 0))
}
