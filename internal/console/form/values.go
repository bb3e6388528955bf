package form

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/callyard/callyard/internal/kit/plainjson"
	"github.com/callyard/callyard/internal/kit/rawjson"
)

// Fault is a value that cannot be sent.
type Fault struct {
	Name, Label string // of the field
	Message     string
}

// JSON returns the values as an indented document. Empty optional members are omitted. Members with
// faults are omitted too.
func (f *Form) JSON() (json.RawMessage, []Fault) {
	if f.Root == nil {
		return json.RawMessage("{}"), nil
	}
	var w writer
	compact, ok := w.value(f.Root)
	if !ok {
		compact = []byte("{}")
	}
	if rawjson.ExceedsDepth(compact, maxNesting) {
		return compact, w.faults
	}
	var b bytes.Buffer
	if json.Indent(&b, compact, "", "  ") != nil {
		return json.RawMessage("{}"), append(w.faults, Fault{f.Root.Name, f.Root.Label, "cannot be written as JSON."})
	}
	return b.Bytes(), w.faults
}

// maxNesting limits the nesting of an indented document, because each level indents everything
// within it. A deeper document is not indented.
const maxNesting = 64

type writer struct{ faults []Fault }

// value returns the JSON of a field. ok is false if the field is omitted.
func (w *writer) value(f *Field) (raw []byte, ok bool) {
	if f.Null {
		return []byte("null"), true
	}
	switch f.Kind {
	case Object:
		return w.object(f)
	case Array:
		b := []byte{'['}
		for i, item := range f.Fields {
			one, ok := w.value(item)
			if !ok {
				one = []byte("null") // an element cannot be omitted
			}
			if i > 0 {
				b = append(b, ',')
			}
			b = append(b, one...)
		}
		return append(b, ']'), len(f.Fields) > 0 || f.Required
	case Variant:
		if len(f.Fields) == 0 {
			return nil, false
		}
		return w.value(f.Fields[0])
	case Choice:
		at, err := strconv.Atoi(f.Value)
		if err != nil || at < 0 || at >= len(f.Options) {
			return nil, false
		}
		return f.Options[at].raw, true
	case Text:
		return quoted(f.Value), f.Value != "" || f.Required
	}
	text := strings.TrimSpace(f.Value)
	switch {
	case text == "":
		return nil, false
	case f.Kind == Number && number([]byte(text)) == "":
		w.faults = append(w.faults, Fault{f.Name, f.Label, "must be a number."})
		return nil, false
	case !json.Valid([]byte(text)):
		w.faults = append(w.faults, Fault{f.Name, f.Label, "must be JSON; a text has quotes."})
		return nil, false
	}
	return []byte(text), true
}

func (w *writer) object(f *Field) ([]byte, bool) {
	b, some := []byte{'{'}, false
	for _, member := range f.Fields {
		one, ok := w.value(member)
		if !ok {
			continue
		}
		if some {
			b = append(b, ',')
		}
		b = append(append(append(b, quoted(member.Label)...), ':'), one...)
		some = true
	}
	return append(b, '}'), some || f.Required
}

// Fill returns the form values for a document. whole is false if the form cannot hold all of the
// document; the values then lack the rest.
func Fill(schema, document json.RawMessage) (values Values, whole bool) {
	if !json.Valid(document) || !rawjson.IsObject(document) {
		return Values{}, false
	}
	var plain bytes.Buffer
	if json.Compact(&plain, document) != nil {
		return Values{}, false
	}
	b := &builder{reader: newReader(schema)}
	values = make(Values)
	s := b.read(schema, 0)
	if len(schema) == 0 {
		s = shape{types: []string{"object"}}
	}
	b.fill(values, "a", s, plain.Bytes(), 0)
	got, faults := New(schema, values).JSON()
	return values, len(faults) == 0 && !b.lost && sameJSON(got, document)
}

// fill sets the controls of a shape to a value. It is the inverse of field.
func (b *builder) fill(to Values, name string, s shape, value json.RawMessage, depth int) {
	if b.count++; b.count > 4*MaxFields || b.steps < 0 {
		return
	}
	if s.nullable && string(value) == "null" {
		to[name+".z"] = "1"
		return
	}
	kind := kindOf(&s)
	if (kind == Object || kind == Array || kind == Variant) && depth >= MaxDepth || kind == Object && depth > 0 && len(s.properties) == 0 {
		kind = JSON
	}
	switch kind {
	case Object:
		for i, p := range s.properties {
			if inner := rawjson.Get(value, p.name); inner != nil {
				b.fill(to, name+"."+strconv.Itoa(i), b.read(p.schema, 0), inner, depth+1)
			}
		}
	case Array:
		all := list(value)
		to[name+".n"] = strconv.Itoa(min(len(all), MaxItems))
		for i, one := range all[:min(len(all), MaxItems)] {
			b.fill(to, name+"."+strconv.Itoa(i), b.read(s.items, 0), one, depth+1)
		}
	case Variant:
		shapes := b.variants(&s)
		if at := b.matching(shapes, value); at >= 0 {
			to[name] = strconv.Itoa(at)
			b.fill(to, name+".v"+strconv.Itoa(at), shapes[at], value, depth+1)
		}
	case Choice:
		to[name] = chosen(s.enum, value, false)
	case Text:
		text, _ := rawjson.Text(value)
		to[name] = asControl(text)
		b.lost = b.lost || strings.ContainsRune(to[name], utf8.RuneError)
	default:
		to[name] = string(value)
	}
}

// asControl returns a text as a form control holds it: browsers convert every line break to a line
// feed, and have no NUL.
func asControl(text string) string {
	return controls.Replace(text)
}

var controls = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\x00", "\ufffd")

// sameJSON reports whether two documents are equivalent. Numbers are compared verbatim.
func sameJSON(a, b []byte) bool {
	x, okX := decoded(a)
	y, okY := decoded(b)
	return okX && okY && reflect.DeepEqual(x, y)
}

func decoded(raw []byte) (v any, ok bool) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	return v, d.Decode(&v) == nil
}

// quoted returns a text as a JSON string with minimal escapes.
func quoted(text string) []byte {
	b, err := plainjson.Marshal(text)
	if err != nil {
		return []byte(`""`) // a string always encodes
	}
	return b
}
