package form

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/callyard/callyard/internal/kit/rawjson"
	"github.com/callyard/callyard/internal/kit/truncate"
)

// Kind is the type of control that shows a field.
type Kind string

// The kinds of fields.
const (
	Text    Kind = "text"
	Number  Kind = "number"
	Boolean Kind = "boolean"
	Choice  Kind = "choice"  // one of Options
	JSON    Kind = "json"    // a text with JSON
	Object  Kind = "object"  // has Fields
	Array   Kind = "array"   // Fields are its elements
	Variant Kind = "variant" // one of Options; its content is the only element of Fields
)

// Limits of a form. If a schema exceeds them, it is edited as JSON: the whole schema, or the part
// that is nested too deep.
const (
	MaxFields = 150
	MaxDepth  = 5
	MaxItems  = 30
	// MaxSchema is the maximum size of a schema, in bytes.
	MaxSchema = 256 << 10
)

// Values maps the names of controls to their values.
type Values map[string]string

// Field is a part of the form.
type Field struct {
	Kind Kind
	// Name is the name of the control. It consists of digits, letters and dots. Label is the name
	// of the member, or another description of the field.
	Name, Label        string
	Title, Description string
	Required, Nullable bool
	// Value is the current value: text, a number, JSON, "true" or "false", or the index of the
	// selected option. It is empty if there is none. Null reports whether null is selected.
	Value string
	Null  bool
	// Format, Pattern, Min and Max describe the constraints of the schema to users.
	Format, Pattern, Min, Max string
	Options                   []Option
	Fields                    []*Field
	// CanGrow reports whether the form can add elements to the array.
	CanGrow bool
}

// Option is one of the values to select from.
type Option struct {
	Label string
	raw   json.RawMessage
}

// Form is the form of a schema.
type Form struct {
	// Root has kind Object or Variant. It is nil if the arguments can only be edited as JSON.
	Root *Field
	// Why is the reason why there is no form.
	Why string
}

// New returns the form of a schema with these values. If values is nil, the defaults of the schema
// are used.
func New(schema json.RawMessage, values Values) *Form {
	if len(schema) > MaxSchema {
		return &Form{Why: "The schema is larger than 256 KiB."}
	}
	b := &builder{reader: newReader(schema), values: values}
	s := b.read(schema, 0)
	if len(schema) == 0 {
		s = shape{types: []string{"object"}}
	}
	root := b.field("a", "Arguments", s, true, 0, nil)
	switch {
	case b.steps < 0 || b.count > MaxFields:
		return &Form{Why: "The schema has more than " + strconv.Itoa(MaxFields) + " fields."}
	case root.Kind != Object && (root.Kind != Variant || !b.objects(&s)):
		return &Form{Why: "The schema cannot be shown as fields."}
	}
	return &Form{Root: root}
}

// objects reports whether all branches of a shape are objects.
func (b *builder) objects(s *shape) bool {
	return !slices.ContainsFunc(b.variants(s), func(one shape) bool { return kindOf(&one) != Object })
}

// builder creates the fields of one form.
type builder struct {
	reader
	values Values // nil means the defaults
	count  int
	lost   bool // a text may contain a replacement for an invalid character
}

// field returns the field of a shape. given is the default that an enclosing schema sets.
func (b *builder) field(name, label string, s shape, required bool, depth int, given json.RawMessage) *Field {
	b.count++
	f := &Field{Name: name, Label: label, Title: s.title, Description: s.description, Required: required, Nullable: s.nullable, Format: s.format, Pattern: s.pattern, Min: s.minimum, Max: s.maximum}
	if given == nil {
		given = s.fallback
	}
	fresh := b.values == nil
	if fresh {
		f.Null = s.nullable && string(given) == "null"
	} else {
		f.Null, f.Value = b.values[name+".z"] != "", b.values[name]
	}
	if b.count > MaxFields || b.steps < 0 {
		f.Kind = JSON
		return f
	}
	f.Kind = kindOf(&s)
	if (f.Kind == Object || f.Kind == Array || f.Kind == Variant) && depth >= MaxDepth {
		f.Kind = JSON
	}
	switch f.Kind {
	case Object:
		b.object(f, &s, depth, given)
	case Array:
		b.array(f, &s, depth, given)
	case Variant:
		b.variant(f, &s, depth, given)
	case Choice:
		for _, one := range s.enum {
			f.Options = append(f.Options, Option{optionLabel(one), one})
		}
		if fresh {
			f.Value = chosen(s.enum, given, required)
		}
	case Text:
		if fresh {
			text, _ := rawjson.Text(given)
			f.Value = asControl(text)
		}
	default:
		if fresh && string(given) != "null" {
			f.Value = string(given)
		}
	}
	return f
}

// kindOf returns the kind of field for a shape.
func kindOf(s *shape) Kind {
	kinds := s.kinds()
	switch {
	case s.opaque || s.tuple:
		return JSON
	case len(s.enum) > 0:
		return Choice
	case len(s.branches) > 0 || len(kinds) > 1:
		return Variant
	case len(kinds) == 0:
		return JSON
	}
	switch kinds[0] {
	case "string":
		return Text
	case "number", "integer":
		return Number
	case "boolean":
		return Boolean
	case "object":
		if len(s.properties) == 0 && len(s.required) > 0 {
			return JSON
		}
		return Object
	case "array":
		if s.items == nil {
			return JSON
		}
		return Array
	}
	return JSON
}

func (b *builder) object(f *Field, s *shape, depth int, given json.RawMessage) {
	if depth > 0 && len(s.properties) == 0 { // a map: its member names are not known
		f.Kind = JSON
		if b.values == nil {
			f.Value = string(given)
		}
		return
	}
	for i, p := range s.properties {
		if b.count > MaxFields {
			return
		}
		var inner json.RawMessage
		if given != nil {
			inner = rawjson.Get(given, p.name)
		}
		f.Fields = append(f.Fields, b.field(f.Name+"."+strconv.Itoa(i), p.name, b.read(p.schema, 0), slices.Contains(s.required, p.name), depth+1, inner))
	}
}

func (b *builder) array(f *Field, s *shape, depth int, given json.RawMessage) {
	defaults := list(given)
	n := len(defaults)
	if b.values != nil {
		n, _ = strconv.Atoi(b.values[f.Name+".n"])
	}
	n = min(max(n, 0), MaxItems)
	for i := range n {
		if b.count > MaxFields {
			return
		}
		var inner json.RawMessage
		if b.values == nil {
			inner = defaults[i]
		}
		f.Fields = append(f.Fields, b.field(f.Name+"."+strconv.Itoa(i), strconv.Itoa(i+1), b.read(s.items, 0), true, depth+1, inner))
	}
	f.CanGrow = n < MaxItems
}

func (b *builder) variant(f *Field, s *shape, depth int, given json.RawMessage) {
	shapes := b.variants(s)
	for i, one := range shapes {
		f.Options = append(f.Options, Option{Label: variantLabel(i, &one)})
	}
	at, err := strconv.Atoi(f.Value)
	if b.values == nil {
		at, err = b.matching(shapes, given), nil
		if given == nil && f.Required {
			at = 0
		}
		if f.Value = strconv.Itoa(at); at < 0 {
			f.Value = ""
		}
	}
	if err != nil || at < 0 || at >= len(shapes) {
		f.Value = ""
		return
	}
	f.Fields = []*Field{b.field(f.Name+".v"+strconv.Itoa(at), f.Options[at].Label, shapes[at], true, depth+1, given)}
}

// variants returns the shapes that a value may have: the branches, each merged with the keywords
// next to them, or one shape per type.
func (b *builder) variants(s *shape) (shapes []shape) {
	if len(s.branches) == 0 {
		for _, kind := range s.kinds() {
			one := *s
			one.types, one.title, one.description, one.nullable, one.fallback = []string{kind}, "", "", false, nil
			shapes = append(shapes, one)
		}
		return shapes
	}
	base := *s
	base.branches, base.title, base.description, base.nullable, base.fallback = nil, "", "", false, nil
	for _, raw := range s.branches {
		branch := b.read(raw, 1)
		one := merge(base, branch)
		one.opaque = branch.opaque
		shapes = append(shapes, one)
	}
	return shapes
}

// matching returns the index of the best shape for a value, or -1 if there is no value or no shape
// fits.
func (b *builder) matching(shapes []shape, value json.RawMessage) int {
	if len(value) == 0 {
		return -1
	}
	best, most := -1, 0
	for i := range shapes {
		if score := b.fit(&shapes[i], value, 0); score > most {
			best, most = i, score
		}
	}
	return best
}

// fit returns how well a value matches a shape; 0 means no match.
func (b *builder) fit(s *shape, value json.RawMessage, depth int) int {
	if b.steps--; b.steps < 0 {
		return 0
	}
	if len(s.enum) > 0 {
		if chosen(s.enum, value, false) == "" {
			return 0
		}
		return 100
	}
	kinds := s.kinds()
	if len(kinds) == 0 {
		return 1
	}
	kind := rawjson.TypeOf(value)
	if !slices.Contains(kinds, kind) && !(kind == "integer" && slices.Contains(kinds, "number")) {
		return 0
	}
	score := 2
	if kind != "object" {
		return score
	}
	for _, name := range s.required {
		if rawjson.Get(value, name) == nil {
			return 0
		}
		score += 2
	}
	rawjson.Members(value, func(name string, inner []byte) {
		i := slices.IndexFunc(s.properties, func(p property) bool { return p.name == name })
		if i < 0 {
			return
		}
		score++
		if depth > 1 {
			return
		}
		p := b.read(s.properties[i].schema, 0)
		if len(p.enum) > 0 && b.fit(&p, inner, depth+1) == 0 {
			score = -1000
		}
	})
	return max(score, 0)
}

// chosen returns the index of a value among the options, as the control sends it. A required member
// with a single option is preselected.
func chosen(options []json.RawMessage, value json.RawMessage, required bool) string {
	for i, one := range options {
		if value != nil && sameJSON(one, value) {
			return strconv.Itoa(i)
		}
	}
	if value == nil && required && len(options) == 1 {
		return "0"
	}
	return ""
}

// optionLabel returns the text that shows a value: strings without their quotes.
func optionLabel(raw json.RawMessage) string {
	if text, ok := rawjson.Text(raw); ok && text != "" {
		return text
	}
	return truncate.Text(string(raw), maxLabel)
}

const maxLabel = 80

// variantLabel returns the label of a branch.
func variantLabel(i int, s *shape) string {
	switch kinds := s.kinds(); {
	case s.title != "":
		return s.title
	case len(kinds) == 1 && kinds[0] == "object" && len(s.required) > 0:
		return "with " + strings.Join(s.required[:min(3, len(s.required))], ", ")
	case len(s.enum) > 0:
		return optionLabel(s.enum[0])
	case len(kinds) == 1:
		return kinds[0]
	}
	return "variant " + strconv.Itoa(i+1)
}
