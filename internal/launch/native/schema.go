package native

import (
	"encoding"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/callyard/callyard/internal/kit/plainjson"
)

// schema is the subset of JSON Schema 2020-12 that Go types need.
type schema struct {
	Ref         string     `json:"$ref,omitempty"`
	Type        any        `json:"type,omitempty"` // one string or a list of two
	AnyOf       []*schema  `json:"anyOf,omitempty"`
	Description string     `json:"description,omitempty"`
	Format      string     `json:"format,omitempty"`
	Encoding    string     `json:"contentEncoding,omitempty"`
	Pattern     string     `json:"pattern,omitempty"`
	Enum        []string   `json:"enum,omitempty"`
	Minimum     *int64     `json:"minimum,omitempty"`
	Maximum     *int64     `json:"maximum,omitempty"`
	Items       *schema    `json:"items,omitempty"`
	Properties  properties `json:"properties,omitempty"`
	Required    []string   `json:"required,omitempty"`
	Names       *schema    `json:"propertyNames,omitempty"`
	Additional  any        `json:"additionalProperties,omitempty"` // false, or a schema
	Defs        properties `json:"$defs,omitempty"`
}

// property is one member of an object. The order of members is kept.
type property struct {
	name string
	of   *schema
}

type properties []property

func (p properties) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for i, one := range p {
		if i > 0 {
			b = append(b, ',')
		}
		name, err := plainjson.Marshal(one.name)
		if err != nil {
			return nil, err
		}
		value, err := plainjson.Marshal(one.of)
		if err != nil {
			return nil, err
		}
		b = append(append(append(b, name...), ':'), value...)
	}
	return append(b, '}'), nil
}

// schemaFor returns a schema that accepts the values that encoding/json, with
// DisallowUnknownFields, decodes into the type. There are five differences: member names are
// case-sensitive, fields that are not optional are required, null is valid only for pointers,
// slices and maps, 64-bit integers have no bounds, and types that parse their own text, such as
// times, accept any string.
//
// jsonschema-go has the same purpose, but does not support recursive types, []byte,
// json.RawMessage, the string option, and maps with keys that are not strings.
func schemaFor(t reflect.Type) (json.RawMessage, error) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	d := &deriver{recursive: map[reflect.Type]bool{}, names: map[reflect.Type]string{}, taken: map[string]bool{}}
	d.findRecursive(t, map[reflect.Type]bool{}, map[reflect.Type]bool{})
	root, err := d.body(t)
	if err != nil {
		return nil, err
	}
	if kind, several := root.Type.([]string); several && kind[0] == "object" { // a map type; null is not a valid object of arguments
		root.Type = kind[0]
	}
	for i := 0; i < len(d.waiting); i++ { // the list grows during the loop
		one := d.waiting[i]
		body, err := d.body(one)
		if err != nil {
			return nil, err
		}
		root.Defs = append(root.Defs, property{d.names[one], body})
	}
	return plainjson.Marshal(root)
}

// wrapped returns the schema of an object whose member "result" has the given schema, or may also be
// null if nullable is set.
func wrapped(inner json.RawMessage, nullable bool) (json.RawMessage, error) {
	// Definitions stay where the references point to.
	var parts map[string]json.RawMessage
	if err := json.Unmarshal(inner, &parts); err != nil {
		return nil, err
	}
	defs := parts["$defs"]
	delete(parts, "$defs")
	var result any = parts
	if nullable && len(parts) > 0 { // {} allows null
		result = map[string]any{"anyOf": []any{parts, map[string]string{"type": "null"}}}
	}
	outer := map[string]any{
		"type": "object", "properties": map[string]any{"result": result}, "required": []string{"result"}, "additionalProperties": false,
	}
	if defs != nil {
		outer["$defs"] = defs
	}
	return plainjson.Marshal(outer)
}

// deriver derives one schema.
type deriver struct {
	recursive map[reflect.Type]bool
	names     map[reflect.Type]string // of recursive types
	taken     map[string]bool
	waiting   []reflect.Type // recursive types that are referenced
}

var (
	unmarshalerType     = reflect.TypeFor[json.Unmarshaler]()
	textUnmarshalerType = reflect.TypeFor[encoding.TextUnmarshaler]()
	marshalerType       = reflect.TypeFor[json.Marshaler]()
	textMarshalerType   = reflect.TypeFor[encoding.TextMarshaler]()
	timeType            = reflect.TypeFor[time.Time]()
	numberType          = reflect.TypeFor[json.Number]()
	bigIntType          = reflect.TypeFor[big.Int]()
	rawType             = reflect.TypeFor[json.RawMessage]()
)

func implements(t, i reflect.Type) bool { return t.Implements(i) || reflect.PointerTo(t).Implements(i) }

// isMarshaler reports whether a type encodes or decodes its own JSON or text.
func isMarshaler(t reflect.Type) bool {
	return implements(t, marshalerType) || implements(t, textMarshalerType) || implements(t, unmarshalerType) || implements(t, textUnmarshalerType)
}

// isObject reports whether values of the type are JSON objects.
func isObject(t reflect.Type) bool {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return !isMarshaler(t) && (t.Kind() == reflect.Struct || t.Kind() == reflect.Map)
}

// findRecursive finds types that contain themselves.
func (d *deriver) findRecursive(t reflect.Type, open, done map[reflect.Type]bool) {
	if open[t] {
		d.recursive[t] = t.Name() != ""
		return
	}
	if done[t] || isMarshaler(t) {
		return
	}
	open[t] = true
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		d.findRecursive(t.Elem(), open, done)
	case reflect.Struct:
		for _, f := range fieldsOf(t) {
			d.findRecursive(f.Type, open, done)
		}
	}
	delete(open, t)
	done[t] = true
}

// of returns the schema of a type, as a reference if the type is recursive.
func (d *deriver) of(t reflect.Type) (*schema, error) {
	if t.Kind() == reflect.Pointer {
		s, err := d.of(t.Elem())
		if err != nil {
			return nil, err
		}
		return orNull(s), nil
	}
	if !d.recursive[t] {
		return d.body(t)
	}
	if d.names[t] == "" {
		plain := definitionName(t)
		name := plain
		for i := 2; d.taken[name]; i++ {
			name = plain + strconv.Itoa(i)
		}
		d.names[t], d.taken[name] = name, true
		d.waiting = append(d.waiting, t)
	}
	return &schema{Ref: "#/$defs/" + d.names[t]}, nil
}

// definitionName returns a name for a type in $defs. The name of a generic type contains the import
// paths of its arguments, and slashes and brackets have another meaning in a reference.
func definitionName(t reflect.Type) string {
	return strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' {
			return r
		}
		return '_'
	}, t.Name())
}

func orNull(s *schema) *schema {
	switch kind := s.Type.(type) {
	case string:
		s.Type = []string{kind, "null"}
	case []string:
		if !slices.Contains(kind, "null") {
			s.Type = append(slices.Clone(kind), "null")
		}
	case nil:
		if s.Ref != "" {
			return &schema{AnyOf: []*schema{s, {Type: "null"}}}
		}
	}
	return s
}

// body returns the schema of a type that is not a pointer.
func (d *deriver) body(t reflect.Type) (*schema, error) {
	switch {
	case t == timeType:
		return &schema{Type: "string", Format: "date-time"}, nil
	case t == numberType:
		return &schema{Type: []string{"number", "string"}, Pattern: numberPattern}, nil
	case t == bigIntType:
		return &schema{Type: "integer"}, nil
	case t == rawType, implements(t, unmarshalerType), implements(t, marshalerType):
		return &schema{}, nil
	case implements(t, textUnmarshalerType), implements(t, textMarshalerType):
		return &schema{Type: "string"}, nil
	}
	switch t.Kind() {
	case reflect.Bool:
		return &schema{Type: "boolean"}, nil
	case reflect.String:
		return &schema{Type: "string"}, nil
	case reflect.Float32, reflect.Float64:
		return &schema{Type: "number"}, nil
	case reflect.Interface:
		if t.NumMethod() == 0 {
			return &schema{}, nil
		}
	case reflect.Slice, reflect.Array:
		return d.list(t)
	case reflect.Map:
		return d.mapping(t)
	case reflect.Struct:
		return d.object(t)
	default:
		if s := integer(t.Kind()); s != nil {
			return s, nil
		}
	}
	return nil, fmt.Errorf("JSON cannot represent a %s", t)
}

// integer returns the schema of an integer with its bounds, or nil for other kinds.
func integer(k reflect.Kind) *schema {
	s := &schema{Type: "integer"}
	bounds := func(least, most int64) *schema {
		s.Minimum, s.Maximum = &least, &most
		return s
	}
	switch k {
	case reflect.Int, reflect.Int64:
		return s
	case reflect.Int8:
		return bounds(math.MinInt8, math.MaxInt8)
	case reflect.Int16:
		return bounds(math.MinInt16, math.MaxInt16)
	case reflect.Int32:
		return bounds(math.MinInt32, math.MaxInt32)
	case reflect.Uint8:
		return bounds(0, math.MaxUint8)
	case reflect.Uint16:
		return bounds(0, math.MaxUint16)
	case reflect.Uint32:
		return bounds(0, math.MaxUint32)
	case reflect.Uint, reflect.Uint64, reflect.Uintptr:
		s.Minimum = new(int64)
		return s
	}
	return nil
}

// base64Pattern matches the strings that encoding/json decodes into bytes.
const base64Pattern = `^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$`

func (d *deriver) list(t reflect.Type) (*schema, error) {
	if e := t.Elem(); t.Kind() == reflect.Slice && e.Kind() == reflect.Uint8 && !isMarshaler(e) {
		return &schema{Type: []string{"string", "null"}, Encoding: "base64", Pattern: base64Pattern}, nil
	}
	items, err := d.of(t.Elem())
	if err != nil {
		return nil, err
	}
	if t.Kind() == reflect.Array { // encoding/json accepts any length
		return &schema{Type: "array", Items: items}, nil
	}
	return &schema{Type: []string{"array", "null"}, Items: items}, nil
}

func (d *deriver) mapping(t reflect.Type) (*schema, error) {
	value, err := d.of(t.Elem())
	if err != nil {
		return nil, err
	}
	s := &schema{Type: []string{"object", "null"}, Additional: value}
	k := t.Key()
	switch {
	case k.Kind() == reflect.String, implements(k, textUnmarshalerType):
	case integer(k.Kind()) != nil:
		s.Names = &schema{Pattern: integerPattern}
		if integer(k.Kind()).Minimum != nil && *integer(k.Kind()).Minimum == 0 {
			s.Names.Pattern = `^[0-9]+$`
		}
	default:
		return nil, fmt.Errorf("JSON cannot represent a map with keys of type %s", k)
	}
	return s, nil
}

const (
	integerPattern = `^-?[0-9]+$`
	numberPattern  = `^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`
)

func (d *deriver) object(t reflect.Type) (*schema, error) {
	s := &schema{Type: "object", Additional: false}
	for _, f := range fieldsOf(t) {
		of, err := d.of(f.Type)
		if err != nil {
			return nil, fmt.Errorf("field %s: %w", f.name, err)
		}
		if f.quoted {
			of = quoted(f.Type, of)
		}
		if f.description != "" {
			of.Description = f.description
		}
		s.Properties = append(s.Properties, property{f.name, of})
		if !f.optional {
			s.Required = append(s.Required, f.name)
		}
	}
	return s, nil
}

// quoted returns the schema of a field with the string option.
func quoted(t reflect.Type, plain *schema) *schema {
	null := false
	for ; t.Kind() == reflect.Pointer; t = t.Elem() {
		null = true
	}
	s := &schema{Type: "string"}
	switch t.Kind() {
	case reflect.Bool:
		s.Enum = []string{"true", "false"}
	case reflect.String:
		s.Pattern = `^".*"$`
	case reflect.Float32, reflect.Float64:
		s.Pattern = numberPattern
	default:
		if integer(t.Kind()) == nil {
			return plain // encoding/json ignores the option
		}
		s.Pattern = integerPattern
	}
	if null {
		return orNull(s)
	}
	return s
}
