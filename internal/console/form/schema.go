package form

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/callyard/callyard/internal/kit/jsonpointer"
	"github.com/callyard/callyard/internal/kit/rawjson"
)

// shape is the part of a schema that a form needs, with references and combinations resolved. The
// zero value allows everything.
type shape struct {
	types              []string // without null
	nullable           bool
	title, description string
	enum               []json.RawMessage
	fallback           json.RawMessage // its default, or nil
	properties         []property
	required           []string
	items              json.RawMessage
	tuple              bool
	branches           []json.RawMessage // of anyOf or oneOf
	format, pattern    string
	minimum, maximum   string
	opaque             bool // it cannot be shown as fields
}

type property struct {
	name   string
	schema json.RawMessage
}

// reader resolves the schemas of one document.
type reader struct {
	root    json.RawMessage
	steps   int                        // remaining; a schema that needs more is opaque
	targets map[string]json.RawMessage // of references; nil if unresolvable
}

const (
	// maxSteps limits the work, in schemas and in blocks of their text.
	maxSteps = 20_000
	block    = 64
	maxRefs  = 16
)

func newReader(root json.RawMessage) reader {
	return reader{root: root, steps: maxSteps, targets: make(map[string]json.RawMessage)}
}

// read resolves a schema. refs is the number of references followed to reach it.
func (r *reader) read(raw json.RawMessage, refs int) shape {
	if r.steps -= 1 + len(raw)/block; r.steps < 0 || refs > maxRefs || !rawjson.IsObject(raw) {
		return shape{opaque: true}
	}
	var s shape
	var ref string
	var all, choices []json.RawMessage
	whole := rawjson.Members(raw, func(name string, value []byte) {
		switch name {
		case "$ref":
			ref, _ = rawjson.Text(value)
		case "allOf":
			all = list(value)
		case "anyOf", "oneOf":
			choices = append(choices, list(value)...)
		default:
			s.take(name, value)
		}
	})
	if !whole {
		return shape{opaque: true}
	}
	if ref != "" {
		target, ok := r.lookUp(ref)
		if !ok {
			return shape{opaque: true, title: s.title, description: s.description}
		}
		s = merge(r.read(target, refs+1), s)
	}
	for _, one := range all {
		s = merge(s, r.read(one, refs+1))
	}
	r.choose(&s, choices, refs)
	return s
}

// take reads one keyword.
func (s *shape) take(name string, value []byte) {
	switch name {
	case "type":
		types := list(value)
		if types == nil {
			types = []json.RawMessage{value}
		}
		for _, t := range types {
			if text, _ := rawjson.Text(t); text == "null" {
				s.nullable = true
			} else if text != "" && !slices.Contains(s.types, text) {
				s.types = append(s.types, text)
			}
		}
	case "nullable":
		s.nullable = s.nullable || string(value) == "true"
	case "title":
		s.title, _ = rawjson.Text(value)
	case "description":
		s.description, _ = rawjson.Text(value)
	case "enum":
		s.enum = list(value)
	case "const":
		s.enum = []json.RawMessage{value}
	case "default":
		s.fallback = value
	case "properties":
		rawjson.Members(value, func(name string, schema []byte) {
			s.put(property{name, schema})
		})
	case "required":
		for _, one := range list(value) {
			if text, ok := rawjson.Text(one); ok {
				s.required = append(s.required, text)
			}
		}
	case "items":
		s.items = value
		s.tuple = s.tuple || !rawjson.IsObject(value) && string(value) != "true"
	case "prefixItems":
		s.tuple = true
	case "format":
		s.format, _ = rawjson.Text(value)
	case "pattern":
		s.pattern, _ = rawjson.Text(value)
	case "minimum", "exclusiveMinimum", "minLength", "minItems":
		s.minimum = number(value)
	case "maximum", "exclusiveMaximum", "maxLength", "maxItems":
		s.maximum = number(value)
	}
}

// put adds a property, or replaces the one with the same name. Beyond the number of properties that
// a form shows, it does not compare names.
func (s *shape) put(p property) {
	if len(s.properties) <= MaxFields {
		if i := slices.IndexFunc(s.properties, func(q property) bool { return q.name == p.name }); i >= 0 {
			s.properties[i] = p
			return
		}
	}
	s.properties = append(s.properties, p)
}

// choose resolves the branches of anyOf and oneOf. A null branch makes the value nullable, a single
// branch is merged, and constants become an enum.
func (r *reader) choose(s *shape, choices []json.RawMessage, refs int) {
	var enum []json.RawMessage
	var kept []json.RawMessage
	constants := true
	for _, one := range choices {
		b := r.read(one, refs+1)
		if b.nullable && len(b.types) == 0 && len(b.enum) == 0 && !b.opaque {
			s.nullable = true
			continue
		}
		kept = append(kept, one)
		constants = constants && len(b.enum) > 0 && !b.opaque
		enum = append(enum, b.enum...)
	}
	switch {
	case len(kept) == 0:
	case len(kept) == 1:
		*s = merge(r.read(kept[0], refs+1), *s)
	case constants && len(s.properties) == 0:
		s.enum = enum
	default:
		s.branches = kept
	}
}

// merge returns under with the keywords of over on top.
func merge(under, over shape) shape {
	s := under
	if len(over.types) > 0 {
		s.types = over.types
	}
	s.nullable = under.nullable || over.nullable
	s.tuple, s.opaque = under.tuple || over.tuple, under.opaque || over.opaque
	for to, from := range map[*string]string{&s.title: over.title, &s.description: over.description, &s.format: over.format, &s.pattern: over.pattern, &s.minimum: over.minimum, &s.maximum: over.maximum} {
		if from != "" {
			*to = from
		}
	}
	if over.enum != nil {
		s.enum = over.enum
	}
	if over.fallback != nil {
		s.fallback = over.fallback
	}
	if over.items != nil {
		s.items = over.items
	}
	if over.branches != nil {
		s.branches = over.branches
	}
	s.properties = slices.Clone(under.properties)
	for _, p := range over.properties {
		s.put(p)
	}
	s.required = slices.Concat(under.required, over.required)
	return s
}

// kinds returns the types that the shape allows. If it names none, they are inferred from its
// members.
func (s *shape) kinds() []string {
	switch {
	case len(s.types) > 0:
		return s.types
	case len(s.properties) > 0 || len(s.required) > 0:
		return []string{"object"}
	case s.items != nil:
		return []string{"array"}
	}
	return nil
}

// lookUp resolves a reference within the document.
func (r *reader) lookUp(ref string) (json.RawMessage, bool) {
	at, known := r.targets[ref]
	if !known {
		at, _ = r.find(ref)
		r.targets[ref] = at
	}
	return at, at != nil
}

func (r *reader) find(ref string) (json.RawMessage, bool) {
	pointer, ok := strings.CutPrefix(ref, "#")
	if !ok || pointer != "" && pointer[0] != '/' {
		return nil, false
	}
	at := r.root
	if pointer == "" {
		return at, true
	}
	for token := range strings.SplitSeq(pointer[1:], "/") {
		if r.steps -= 1 + len(at)/block; r.steps < 0 {
			return nil, false
		}
		token = jsonpointer.Name(unescape(token))
		if rawjson.IsObject(at) {
			at = rawjson.Get(at, token)
		} else if i, err := strconv.Atoi(token); err == nil && i >= 0 && i < len(list(at)) {
			at = list(at)[i]
		} else {
			return nil, false
		}
		if at == nil {
			return nil, false
		}
	}
	return at, true
}

// unescape decodes the valid percent-encoded parts of s.
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+3], 16, 8); err == nil {
				b.WriteByte(byte(n))
				i += 2
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// list returns the elements of an array, or nil if raw is not an array.
func list(raw []byte) []json.RawMessage {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || raw[0] != '[' {
		return nil
	}
	all := []json.RawMessage{}
	if json.Unmarshal(raw, &all) != nil {
		return nil
	}
	return all
}

// number returns a number verbatim, or "" if raw is not a number.
func number(raw []byte) string {
	var n json.Number
	if len(raw) == 0 || raw[0] == '"' || json.Unmarshal(raw, &n) != nil {
		return ""
	}
	return n.String()
}
