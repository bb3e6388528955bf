package format

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf8"
)

// lenientParser parses JSON as models write it: single quotes, trailing and missing commas, unquoted names,
// True, False and None, comments, line breaks in strings, and missing closing brackets. It
// converts the text to JSON and fails if it would have to guess.
type lenientParser struct {
	text []byte
	at   int
	out  []byte
	// steps limits the work of one extraction; see [Extract].
	steps *int
	// open reports that the end of the text closed an object or a list.
	open bool
}

const nearlyDepth = 64

// value reads a value and appends its JSON. It reports success.
func (n *lenientParser) value(depth int) bool {
	n.space()
	if *n.steps -= 4; *n.steps < 0 || depth > nearlyDepth || n.at >= len(n.text) {
		return false
	}
	switch c := n.text[n.at]; {
	case c == '{':
		return n.object(depth)
	case c == '[':
		return n.list(depth)
	case c == '"', c == '\'', c == '`':
		s, ok := n.str()
		n.out = append(n.out, quote(s)...)
		return ok
	case c == '-', c == '+', c == '.', c >= '0' && c <= '9':
		return n.number()
	}
	return n.word()
}

func (n *lenientParser) space() {
	for n.at < len(n.text) {
		switch c := n.text[n.at]; {
		case c == ' ', c == '\t', c == '\n', c == '\r':
			n.at++
		case c == '#', c == '/' && n.next("//"):
			n.skip(bytes.IndexByte(n.text[n.at:], '\n'))
		case c == '/' && n.next("/*"):
			end := bytes.Index(n.text[n.at+2:], []byte("*/"))
			if end >= 0 {
				end += len("/**/")
			}
			n.skip(end)
		default:
			return
		}
	}
}

// skip advances by that many bytes, or to the end if by is negative.
func (n *lenientParser) skip(by int) {
	if by < 0 {
		by = len(n.text) - n.at
	}
	n.at += by
	*n.steps -= by / 8 // limits repeated reading of the same long comment
}

func (n *lenientParser) next(s string) bool { return bytes.HasPrefix(n.text[n.at:], []byte(s)) }

func (n *lenientParser) object(depth int) bool {
	n.at++
	n.out = append(n.out, '{')
	for first := true; ; first = false {
		if n.ended('}') {
			return true
		}
		if !first {
			n.out = append(n.out, ',')
		}
		name, ok := n.name()
		if !ok {
			return false
		}
		n.out = append(append(n.out, quote(name)...), ':')
		*n.steps -= 8
		n.space()
		if n.at >= len(n.text) || n.text[n.at] != ':' && n.text[n.at] != '=' {
			return false
		}
		n.at++
		if !n.value(depth + 1) {
			return false
		}
		if !n.separated('}') {
			return false
		}
	}
}

// ended skips commas and reports whether the object or list ends here, at its closing bracket or at
// the end of the text. If so, it appends the closing bracket.
func (n *lenientParser) ended(end byte) bool {
	n.space()
	for n.at < len(n.text) && n.text[n.at] == ',' {
		n.at++
		n.space()
	}
	switch {
	case n.at >= len(n.text):
		n.open = true
	case n.text[n.at] == end:
		n.at++
	default:
		return false
	}
	n.out = append(n.out, end)
	return true
}

// separated reports whether the text after a value can follow it.
func (n *lenientParser) separated(end byte) bool {
	n.space()
	if n.at >= len(n.text) {
		return true
	}
	switch c := n.text[n.at]; c {
	case ',', end:
		return true
	case '"', '\'': // a comma is missing
		return true
	default:
		return false
	}
}

func (n *lenientParser) name() (string, bool) {
	if c := n.text[n.at]; c == '"' || c == '\'' || c == '`' {
		return n.str()
	}
	from := n.at
	for n.at < len(n.text) && (nameByte(n.text[n.at]) || n.text[n.at] == '$' || n.text[n.at] == '.' || n.text[n.at] >= utf8.RuneSelf) {
		n.at++
	}
	name := string(n.text[from:n.at])
	return name, name != "" && utf8.ValidString(name)
}

func (n *lenientParser) list(depth int) bool {
	n.at++
	n.out = append(n.out, '[')
	for first := true; ; first = false {
		if n.ended(']') {
			return true
		}
		if !first {
			n.out = append(n.out, ',')
		}
		if !n.value(depth+1) || !n.separated(']') {
			return false
		}
	}
}

// str reads a string in any quotes. It fails without a closing quote, because the end of a
// truncated string cannot be guessed.
func (n *lenientParser) str() (string, bool) {
	q := n.text[n.at]
	end := []byte{q}
	if triple := bytes.Repeat(end, 3); q != '`' && bytes.HasPrefix(n.text[n.at:], triple) {
		end = triple
	}
	var b strings.Builder
	for n.at += len(end); n.at < len(n.text); {
		if *n.steps--; *n.steps < 0 {
			return "", false
		}
		c := n.text[n.at]
		switch {
		case bytes.HasPrefix(n.text[n.at:], end):
			n.at += len(end)
			return b.String(), utf8.ValidString(b.String())
		case c == '\\' && n.at+1 < len(n.text):
			n.escape(&b)
		default:
			b.WriteByte(c)
			n.at++
		}
	}
	return "", false
}

func (n *lenientParser) escape(b *strings.Builder) {
	c := n.text[n.at+1]
	n.at += 2
	if i := strings.IndexByte("ntrbf", c); i >= 0 {
		b.WriteByte("\n\t\r\b\f"[i])
		return
	}
	switch c {
	case '"', '\'', '`', '\\', '/':
		b.WriteByte(c)
	case '\n': // a Python line continuation
	case 'u':
		r, ok := n.hex(4)
		if ok && r >= 0xd800 && r < 0xdc00 && n.next(`\u`) {
			at := n.at
			n.at += 2
			if low, fits := n.hex(4); fits && low >= 0xdc00 && low < 0xe000 {
				r = (r-0xd800)<<10 + (low - 0xdc00) + 0x10000
			} else {
				n.at = at
			}
		}
		if !ok {
			b.WriteString(`\u`)
			return
		}
		b.WriteRune(r)
	case 'x':
		if r, ok := n.hex(2); ok {
			b.WriteRune(r)
		} else {
			b.WriteString(`\x`)
		}
	default: // a path or a pattern with a single backslash
		b.WriteByte('\\')
		b.WriteByte(c)
	}
}

func (n *lenientParser) hex(digits int) (rune, bool) {
	if n.at+digits > len(n.text) {
		return 0, false
	}
	v, err := strconv.ParseUint(string(n.text[n.at:n.at+digits]), 16, 32)
	if err != nil {
		return 0, false
	}
	n.at += digits
	return rune(v), true
}

func (n *lenientParser) number() bool {
	from := n.at
	for n.at < len(n.text) && (strings.IndexByte("+-._", n.text[n.at]) >= 0 || n.text[n.at] >= '0' && n.text[n.at] <= '9' || n.text[n.at] == 'e' || n.text[n.at] == 'E') {
		n.at++
	}
	raw := bytes.TrimPrefix(bytes.ReplaceAll(n.text[from:n.at], []byte("_"), nil), []byte("+"))
	sign := bytes.HasPrefix(raw, []byte("-"))
	raw = bytes.TrimPrefix(raw, []byte("-"))
	if bytes.HasPrefix(raw, []byte(".")) {
		raw = append([]byte("0"), raw...)
	}
	raw = bytes.TrimSuffix(raw, []byte("."))
	if sign {
		raw = append([]byte("-"), raw...)
	}
	v, err := read(raw)
	if err != nil || v.kind != '0' {
		return false
	}
	n.out = append(n.out, raw...)
	return true
}

func (n *lenientParser) word() bool {
	from := n.at
	for n.at < len(n.text) && nameByte(n.text[n.at]) {
		n.at++
	}
	switch string(n.text[from:n.at]) {
	case "true", "True", "TRUE":
		n.out = append(n.out, "true"...)
	case "false", "False", "FALSE":
		n.out = append(n.out, "false"...)
	case "null", "None", "nil", "undefined":
		n.out = append(n.out, "null"...)
	default:
		return false
	}
	return true
}
