package config

import (
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"
)

var (
	durationType = reflect.TypeFor[time.Duration]()
	textReader   = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// field is one key of a struct.
type field struct {
	key   string
	index []int
	typ   reflect.Type
}

// fieldsOf lists the keys of a struct type in the order of its fields.
func fieldsOf(t reflect.Type) []field {
	var fields []field
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if name == "-" || !f.IsExported() && !f.Anonymous {
			continue
		}
		if f.Type.Kind() == reflect.Struct && (options == "inline" || f.Anonymous && name == "") {
			for _, inner := range fieldsOf(f.Type) {
				inner.index = append([]int{i}, inner.index...)
				fields = append(fields, inner)
			}
			continue
		}
		if !f.IsExported() {
			continue
		}
		if name == "" {
			name = SnakeCase(f.Name)
		}
		fields = append(fields, field{key: name, index: []int{i}, typ: f.Type})
	}
	return fields
}

// SnakeCase turns MaxResult into max_result and NATSCluster into nats_cluster.
func SnakeCase(name string) string {
	var b strings.Builder
	runes := []rune(name)
	for i, r := range runes {
		if unicode.IsUpper(r) && i > 0 &&
			(!unicode.IsUpper(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1])) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// isText reports whether the type parses its values from text itself.
func isText(t reflect.Type) bool {
	return t == durationType || reflect.PointerTo(t).Implements(textReader)
}

// isSection reports whether the type is a struct whose fields are keys.
func isSection(t reflect.Type) bool { return t.Kind() == reflect.Struct && !isText(t) }

// section is a named part of the configuration; value is settable.
type section struct {
	key   string
	value reflect.Value
}

// sectionsOf lists the root keys of the target of Load: the fields of a struct, or the entries of
// a map of pointers.
func sectionsOf(into any) ([]section, error) {
	if parts, ok := into.(map[string]any); ok {
		var list []section
		for key, part := range parts {
			v := reflect.ValueOf(part)
			if v.Kind() != reflect.Pointer || v.IsNil() {
				return nil, fmt.Errorf("config: the section %q is a %T; it must be a pointer that is not nil", key, part)
			}
			list = append(list, section{key, v.Elem()})
		}
		slices.SortFunc(list, func(a, b section) int { return strings.Compare(a.key, b.key) })
		return list, nil
	}
	v := reflect.ValueOf(into)
	if v.Kind() != reflect.Pointer || v.IsNil() || v.Elem().Kind() != reflect.Struct {
		return nil, fmt.Errorf("config: %T cannot be filled; give a pointer to a struct or a map[string]any of pointers", into)
	}
	return sectionsIn(v.Elem()), nil
}

// sectionsIn lists the keys of a struct with their values.
func sectionsIn(v reflect.Value) []section {
	var list []section
	for _, f := range fieldsOf(v.Type()) {
		list = append(list, section{f.key, v.FieldByIndex(f.index)})
	}
	return list
}

// setting is one key that a variable or flag can set.
type setting struct {
	path     string
	variable string
	typ      reflect.Type
	root     reflect.Value // the section
	steps    [][]int       // from root, field by field
}

// prefix starts the name of every Callyard variable.
const prefix = "CALLYARD_"

// value returns the value to set. It allocates pointers on the path.
func (s *setting) value() reflect.Value {
	v := s.root
	for _, step := range s.steps {
		if v.Kind() == reflect.Pointer {
			if v.IsNil() {
				v.Set(reflect.New(v.Type().Elem()))
			}
			v = v.Elem()
		}
		v = v.FieldByIndex(step)
	}
	return v
}

// keysOf lists the sections of the target of Load and all settings below them.
func keysOf(into any) ([]section, []setting, error) {
	sections, err := sectionsOf(into)
	if err != nil {
		return nil, nil, err
	}
	settings, err := settingsOf(sections)
	return sections, settings, err
}

// settingsOf lists everything below the sections that has a variable. Two keys
// that share one are a mistake in the program.
func settingsOf(sections []section) ([]setting, error) {
	var list []setting
	var walk func(s setting, chain []reflect.Type) error
	walk = func(s setting, chain []reflect.Type) error {
		t := s.typ
		if t.Kind() == reflect.Pointer && isSection(t.Elem()) {
			t = t.Elem()
		}
		if !isSection(t) {
			if err := supported(s.typ, s.path); err != nil {
				return err
			}
			s.variable = prefix + upperSnake(s.path)
			list = append(list, s)
			return nil
		}
		if slices.Contains(chain, t) {
			return fmt.Errorf("config: the type %s at %s contains itself", t, s.path)
		}
		for _, f := range fieldsOf(t) {
			inner := setting{path: join(s.path, f.key), typ: f.typ, root: s.root, steps: append(slices.Clip(s.steps), f.index)}
			if err := walk(inner, append(slices.Clip(chain), t)); err != nil {
				return err
			}
		}
		return nil
	}
	for _, sec := range sections {
		if err := walk(setting{path: sec.key, typ: sec.value.Type(), root: sec.value}, nil); err != nil {
			return nil, err
		}
	}
	byVariable := make(map[string]string, len(list))
	for _, s := range list {
		if other, ok := byVariable[s.variable]; ok {
			return nil, fmt.Errorf("config: the keys %s and %s share the variable %s", other, s.path, s.variable)
		}
		byVariable[s.variable] = s.path
	}
	return list, nil
}

func upperSnake(path string) string {
	return strings.ToUpper(strings.NewReplacer(".", "_", "-", "_").Replace(path))
}

// supported rejects types that a configuration cannot fill. Structs in lists and maps are checked
// when the decoder reaches them.
func supported(t reflect.Type, path string) error {
	if isText(t) {
		return nil
	}
	switch t.Kind() {
	case reflect.String, reflect.Bool, reflect.Float32, reflect.Float64,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Struct:
		return nil
	case reflect.Pointer, reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 && !isText(t.Elem()) {
			break
		}
		return supported(t.Elem(), path)
	case reflect.Map:
		if t.Key().Kind() != reflect.String {
			break
		}
		return supported(t.Elem(), path)
	case reflect.Interface:
		if t.NumMethod() == 0 {
			return nil
		}
	}
	return fmt.Errorf("config: the type %s at %s cannot be set from a file", t, path)
}
