package format

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"unicode/utf8"

	"github.com/callyard/callyard/internal/kit/plainjson"
	"github.com/callyard/callyard/internal/kit/truncate"
)

// maxDepth limits the nesting of JSON that is read.
const maxDepth = 256

var (
	errNotJSON = errors.New("it is not JSON")
	errTooDeep = errors.New("it nests too deep")
)

// value is one JSON value. Members keep their order, and numbers their spelling.
type value struct {
	kind       byte // '{', '[', '"', '0', 't', 'f' or 'n'
	raw        []byte
	members    []member
	items      []*value
	whole      []byte // the text that was read; start and end are offsets in it
	start, end int
}

type member struct {
	name           string
	value          *value
	nameAt, nameTo int // start and end of the name, including quotes
}

// read parses a text.
func read(text []byte) (*value, error) {
	if !json.Valid(text) {
		return nil, errNotJSON
	}
	r := reader{text: text}
	v := r.value(0)
	if v == nil {
		return nil, errTooDeep
	}
	return v, nil
}

// reader parses text that is known to be valid JSON.
type reader struct {
	text []byte
	at   int
}

func (r *reader) space() {
	for r.at < len(r.text) && (r.text[r.at] == ' ' || r.text[r.at] == '\t' || r.text[r.at] == '\r' || r.text[r.at] == '\n') {
		r.at++
	}
}

// value reads the next value. It returns nil if it nests too deep.
func (r *reader) value(depth int) *value {
	if depth > maxDepth {
		return nil
	}
	r.space()
	v := &value{kind: r.text[r.at], whole: r.text, start: r.at}
	switch v.kind {
	case '{':
		r.at++
		for r.space(); r.text[r.at] != '}'; r.space() {
			if r.text[r.at] == ',' {
				r.at++
				r.space()
			}
			m := member{nameAt: r.at}
			m.name = text(r.token())
			m.nameTo = r.at
			r.space()
			r.at++ // the colon
			if m.value = r.value(depth + 1); m.value == nil {
				return nil
			}
			v.members = append(v.members, m)
		}
		r.at++
	case '[':
		r.at++
		for r.space(); r.text[r.at] != ']'; r.space() {
			if r.text[r.at] == ',' {
				r.at++
			}
			item := r.value(depth + 1)
			if item == nil {
				return nil
			}
			v.items = append(v.items, item)
		}
		r.at++
	default:
		v.raw = r.token()
		if v.kind == '-' || v.kind >= '0' && v.kind <= '9' {
			v.kind = '0'
		}
	}
	v.end = r.at
	return v
}

// token reads a string, a number or a word.
func (r *reader) token() []byte {
	from := r.at
	if r.text[r.at] == '"' {
		for r.at++; r.text[r.at] != '"'; r.at++ {
			if r.text[r.at] == '\\' {
				r.at++
			}
		}
		r.at++
		return r.text[from:r.at]
	}
	for r.at < len(r.text) && bytes.IndexByte([]byte(",]} \t\r\n:"), r.text[r.at]) < 0 {
		r.at++
	}
	return r.text[from:r.at]
}

// text decodes a JSON string.
func text(quoted []byte) string {
	var s string
	_ = json.Unmarshal(quoted, &s) // known to be valid JSON
	return s
}

// quote encodes a JSON string with the minimum of escapes.
func quote(s string) []byte {
	b, _ := plainjson.Marshal(s) // a string always encodes
	return b
}

func str(s string) *value    { return &value{kind: '"', raw: quote(s)} }
func null() *value           { return &value{kind: 'n', raw: []byte("null")} }
func ok() *value             { return &value{kind: 't', raw: []byte("true")} }
func falseSchema() *value    { return &value{kind: 'f', raw: []byte("false")} }
func number(s string) *value { return &value{kind: '0', raw: []byte(s)} }
func list(items ...*value) *value {
	return &value{kind: '[', items: items}
}
func object() *value { return &value{kind: '{'} }

// asWritten returns an opaque value that is encoded as these bytes.
func asWritten(text []byte) *value { return &value{kind: 'r', raw: text} }

// fields returns an object with string members: alternating names and texts.
func fields(members ...string) *value { return object().with(members) }

// typed returns an object with that type and string members.
func typed(t string, members ...string) *value { return object().set("type", str(t)).with(members) }

// with adds string members to an object and returns it.
func (v *value) with(members []string) *value {
	for i := 1; i < len(members); i += 2 {
		v.set(members[i-1], str(members[i]))
	}
	return v
}

// get returns a member, or nil if there is none. Of duplicate names, the last wins.
func (v *value) get(name string) *value {
	if v == nil {
		return nil
	}
	for _, m := range slices.Backward(v.members) {
		if m.name == name {
			return m.value
		}
	}
	return nil
}

// set replaces the member of that name, or appends one, and returns v.
func (v *value) set(name string, to *value) *value {
	for i := range v.members {
		if v.members[i].name == name {
			v.members[i].value = to
			return v
		}
	}
	v.members = append(v.members, member{name: name, value: to})
	return v
}

// drop removes a member and returns it.
func (v *value) drop(name string) *value {
	was := v.get(name)
	v.members = slices.DeleteFunc(v.members, func(m member) bool { return m.name == name })
	return was
}

func (v *value) isObject() bool { return v != nil && v.kind == '{' }
func (v *value) isList() bool   { return v != nil && v.kind == '[' }
func (v *value) isString() bool { return v != nil && v.kind == '"' }
func (v *value) isTrue() bool   { return v != nil && v.kind == 't' }
func (v *value) isNull() bool   { return v != nil && v.kind == 'n' }

// text returns the content of a string, or "" for any other value.
func (v *value) text() string {
	if !v.isString() {
		return ""
	}
	return text(v.raw)
}

// texts returns the strings in a list.
func (v *value) texts() (all []string) {
	if !v.isList() {
		return nil
	}
	for _, item := range v.items {
		if item.isString() {
			all = append(all, item.text())
		}
	}
	return all
}

func listOf(texts []string) *value {
	v := list()
	for _, t := range texts {
		v.items = append(v.items, str(t))
	}
	return v
}

// clone returns a deep copy of members and items.
func (v *value) clone() *value {
	if v == nil {
		return nil
	}
	c := *v
	c.members = slices.Clone(v.members)
	for i := range c.members {
		c.members[i].value = c.members[i].value.clone()
	}
	c.items = slices.Clone(v.items)
	for i := range c.items {
		c.items[i] = c.items[i].clone()
	}
	return &c
}

// encode appends the value without white space.
func (v *value) encode(to []byte) []byte {
	switch v.kind {
	case '{':
		to = append(to, '{')
		for i, m := range v.members {
			if i > 0 {
				to = append(to, ',')
			}
			to = append(append(to, quote(m.name)...), ':')
			to = m.value.encode(to)
		}
		return append(to, '}')
	case '[':
		to = append(to, '[')
		for i, item := range v.items {
			if i > 0 {
				to = append(to, ',')
			}
			to = item.encode(to)
		}
		return append(to, ']')
	}
	return append(to, v.raw...)
}

// brief returns the value as text for a sentence, truncated if it is long.
func (v *value) brief() string {
	const most = 160
	raw := v.encode(nil)
	if !utf8.Valid(raw) {
		raw = bytes.ToValidUTF8(raw, []byte("\uFFFD"))
	}
	return truncate.Within(string(raw), most)
}

// size returns the number of values in v, including v. It stops counting soon after most.
func (v *value) size(most int) int {
	n := 1
	for _, m := range v.members {
		if n > most {
			return n
		}
		n += m.value.size(most - n)
	}
	for _, item := range v.items {
		if n > most {
			return n
		}
		n += item.size(most - n)
	}
	return n
}

func equalValues(a, b *value) bool { return bytes.Equal(a.encode(nil), b.encode(nil)) }
