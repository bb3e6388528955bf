package risk

import (
	"bytes"
	"encoding/json"
)

// hint is the value of a server's hint: yes, no, or not usable.
type hint int8

const (
	unsaid hint = iota
	ok
	no
)

// hints are the two annotations of a tool that affect its risk.
type hints struct{ readOnly, destructive hint }

// destroys reports whether the server declares the tool as destructive.
func (h hints) destroys() bool { return h.destructive == ok && h.readOnly != ok }

var annotationsWord, escapeMark = []byte("annotations"), []byte(`\u`)

// hintsOf reads the annotations of a tool definition. Key names are case-sensitive, as in
// MCP. A duplicate key, or a value other than true or false, is ignored, because JSON
// parsers disagree on its meaning.
func hintsOf(definition []byte) (h hints) {
	if !bytes.Contains(definition, annotationsWord) && !bytes.Contains(definition, escapeMark) {
		return hints{}
	}
	c := cursor{raw: definition}
	annotations, n := []byte(nil), 0
	ok := c.object(func(key, value []byte) {
		if is(key, "annotations") {
			annotations, n = value, n+1
		}
	})
	if !ok || n != 1 {
		return hints{}
	}
	reads, destroys := 0, 0
	c = cursor{raw: annotations}
	ok = c.object(func(key, value []byte) {
		switch {
		case is(key, "readOnlyHint"):
			h.readOnly = hintOf(value)
			reads++
		case is(key, "destructiveHint"):
			h.destructive = hintOf(value)
			destroys++
		}
	})
	if !ok || reads > 1 || destroys > 1 {
		return hints{}
	}
	return h
}

func hintOf(value []byte) hint {
	switch string(value) {
	case "true":
		return ok
	case "false":
		return no
	}
	return unsaid
}

// is reports whether a key, with its quotes, equals a name.
func is(key []byte, name string) bool {
	if bytes.IndexByte(key, '\\') < 0 {
		return string(key[1:len(key)-1]) == name
	}
	var text string
	return json.Unmarshal(key, &text) == nil && text == name
}

// cursor scans one JSON text without decoding it. It stays within the text for any input, but
// finds the ends of values only in valid JSON.
type cursor struct {
	raw []byte
	at  int
}

func (c *cursor) space() {
	for c.at < len(c.raw) {
		switch c.raw[c.at] {
		case ' ', '\t', '\n', '\r':
			c.at++
		default:
			return
		}
	}
}

func (c *cursor) take(b byte) bool {
	c.space()
	if c.at < len(c.raw) && c.raw[c.at] == b {
		c.at++
		return true
	}
	return false
}

// object visits the members of the object at the cursor. It returns false unless there is one
// complete object.
func (c *cursor) object(visit func(key, value []byte)) bool {
	if !c.take('{') {
		return false
	}
	if c.take('}') {
		return true
	}
	for {
		c.space()
		key := c.text()
		if key == nil || !c.take(':') {
			return false
		}
		value := c.value()
		if len(value) == 0 {
			return false
		}
		visit(key, value)
		if c.take('}') {
			return true
		}
		if !c.take(',') {
			return false
		}
	}
}

// text returns the string at the cursor with its quotes, or nil.
func (c *cursor) text() []byte {
	start := c.at
	if start >= len(c.raw) || c.raw[start] != '"' {
		return nil
	}
	for i := start + 1; i < len(c.raw); i++ {
		switch c.raw[i] {
		case '\\':
			i++
		case '"':
			c.at = i + 1
			return c.raw[start:c.at]
		}
	}
	return nil
}

// structural marks the characters that can end a value.
var structural = [128]bool{'"': true, '{': true, '}': true, '[': true, ']': true, ',': true, ' ': true, '\t': true, '\n': true, '\r': true}

// value returns the bytes of the value at the cursor, or nil.
func (c *cursor) value() []byte {
	c.space()
	start, depth := c.at, 0
	for c.at < len(c.raw) {
		b := c.raw[c.at]
		if b >= 0x80 || !structural[b] {
			c.at++
			continue
		}
		switch b {
		case '"':
			if c.text() == nil {
				return nil
			}
			if depth == 0 {
				return c.raw[start:c.at]
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return c.raw[start:c.at]
			}
			if depth--; depth == 0 {
				c.at++
				return c.raw[start:c.at]
			}
		case ',', ' ', '\t', '\n', '\r':
			if depth == 0 {
				return c.raw[start:c.at]
			}
		}
		c.at++
	}
	if depth > 0 {
		return nil
	}
	return c.raw[start:c.at]
}
