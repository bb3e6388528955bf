package native

import (
	"reflect"
	"strings"
	"unicode"
)

// field is a member of the JSON object of a struct.
type field struct {
	reflect.StructField
	name        string
	description string
	optional    bool
	quoted      bool

	depth  int
	tagged bool
}

// fieldsOf returns the members of a struct's JSON object by the rules of encoding/json: of several
// fields with the same name, the least nested wins, then the one with a tag, otherwise none.
func fieldsOf(t reflect.Type) []field {
	var all []field
	level, seen := []reflect.Type{t}, map[reflect.Type]bool{t: true}
	optional := map[reflect.Type]bool{} // embedded through a pointer: the fields may be missing
	for depth := 0; len(level) > 0; depth++ {
		var next []reflect.Type
		for _, in := range level {
			for field := range in.Fields() {
				f, embedded, ok := readField(field)
				switch {
				case !ok:
				case embedded != nil:
					if !seen[embedded] {
						next = append(next, embedded)
						optional[embedded] = optional[in] || f.Type.Kind() == reflect.Pointer
					}
				default:
					f.depth = depth
					f.optional = f.optional || optional[in]
					all = append(all, f)
				}
			}
		}
		for _, one := range next {
			seen[one] = true
		}
		level = next
	}
	return dominant(all)
}

// readField reads one field of a struct. embedded is a struct whose fields are members of the outer
// object. ok is false for a field that encoding/json ignores.
func readField(f reflect.StructField) (_ field, embedded reflect.Type, ok bool) {
	tag := f.Tag.Get("json")
	inner := f.Type
	if inner.Kind() == reflect.Pointer {
		inner = inner.Elem()
	}
	switch {
	case tag == "-":
		return field{}, nil, false
	case f.Anonymous && !f.IsExported() && (inner.Kind() != reflect.Struct || f.Type.Kind() == reflect.Pointer):
		return field{}, nil, false
	case !f.Anonymous && !f.IsExported():
		return field{}, nil, false
	}
	name, options, _ := strings.Cut(tag, ",")
	if !validName(name) {
		name = ""
	}
	if f.Anonymous && name == "" && inner.Kind() == reflect.Struct {
		return field{StructField: f}, inner, true
	}
	out := field{StructField: f, name: name, tagged: name != "", description: f.Tag.Get("jsonschema"), optional: f.Type.Kind() == reflect.Pointer}
	if name == "" {
		out.name = f.Name
	}
	for option := range strings.SplitSeq(options, ",") {
		switch option {
		case "omitempty", "omitzero":
			out.optional = true
		case "string":
			out.quoted = true
		}
	}
	return out, nil, true
}

// validName reports whether encoding/json accepts a name in a tag.
func validName(name string) bool {
	for _, c := range name {
		if !strings.ContainsRune("!#$%&()*+-./:;<=>?@[]^_{|}~ ", c) && !unicode.IsLetter(c) && !unicode.IsDigit(c) {
			return false
		}
	}
	return name != ""
}

// dominant keeps at most one field for each name.
func dominant(all []field) []field {
	better := func(a, b *field) int { // a positive value means that a wins
		switch {
		case a.depth != b.depth:
			return b.depth - a.depth
		case a.tagged != b.tagged:
			if a.tagged {
				return 1
			}
			return -1
		}
		return 0
	}
	var out []field
	for i := range all {
		wins := true
		for j := range all {
			if i != j && all[i].name == all[j].name && better(&all[i], &all[j]) <= 0 {
				wins = false
				break
			}
		}
		if wins {
			out = append(out, all[i])
		}
	}
	return out
}
