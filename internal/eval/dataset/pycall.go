package dataset

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxNesting limits the nesting of lists and objects in the arguments of a call.
const maxNesting = 100

// argument is an argument of a call in Python. Its name is "" for a positional argument.
type argument struct {
	name  string
	value json.RawMessage
}

// pythonCall parses a call in Python syntax, f(1, b="x"), with literals of strings, numbers, True,
// False and None, and lists and dictionaries of them. Numbers stay as written.
func pythonCall(text string) (name string, arguments []argument, err error) {
	r := &pythonReader{text: text}
	name = r.name()
	if name == "" || !r.take('(') {
		return "", nil, r.fault("a call begins with a name and a parenthesis")
	}
	for !r.take(')') {
		if len(arguments) > 0 && !r.take(',') {
			return "", nil, r.fault("a comma is missing between arguments")
		}
		if len(arguments) > 0 && r.take(')') { // after a trailing comma
			break
		}
		var a argument
		if a.name = r.keyword(); a.name == "" && len(arguments) > 0 && arguments[len(arguments)-1].name != "" {
			return "", nil, r.fault("an argument without a name follows one with a name")
		}
		if a.value, err = r.value(0); err != nil {
			return "", nil, err
		}
		arguments = append(arguments, a)
	}
	if r.space(); r.at < len(text) {
		return "", nil, r.fault("text follows the call")
	}
	return name, arguments, nil
}

// asObject assigns positional arguments to the parameters of the function, in order.
func asObject(arguments []argument, parameters []string) (json.RawMessage, error) {
	var out bytes.Buffer
	seen := map[string]bool{}
	out.WriteByte('{')
	for i, a := range arguments {
		if a.name == "" {
			if i >= len(parameters) {
				return nil, fmt.Errorf("there are %d arguments without a name, and %d parameters", i+1, len(parameters))
			}
			a.name = parameters[i]
		}
		if seen[a.name] {
			return nil, fmt.Errorf("the argument %s occurs twice", a.name)
		}
		seen[a.name] = true
		if i > 0 {
			out.WriteByte(',')
		}
		out.Write(jsonText(a.name))
		out.WriteByte(':')
		out.Write(a.value)
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}

// jsonText encodes a string as JSON.
func jsonText(text string) []byte {
	raw, err := json.Marshal(text)
	if err != nil {
		return []byte(`""`) // a string always encodes
	}
	return raw
}

type pythonReader struct {
	text string
	at   int
}

func (r *pythonReader) fault(says string) error {
	return fmt.Errorf("%s, at byte %d of %q", says, r.at, r.text)
}

func (r *pythonReader) space() {
	for r.at < len(r.text) && strings.IndexByte(" \t\r\n", r.text[r.at]) >= 0 {
		r.at++
	}
}

// take skips a character and white space before it, if it is next.
func (r *pythonReader) take(c byte) bool {
	if r.space(); r.at < len(r.text) && r.text[r.at] == c {
		r.at++
		return true
	}
	return false
}

func (r *pythonReader) name() string {
	r.space()
	from := r.at
	for r.at < len(r.text) {
		c := r.text[r.at]
		letter := c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !letter && (r.at == from || c < '0' || c > '9') {
			break
		}
		r.at++
	}
	return r.text[from:r.at]
}

// keyword reads the name of an argument with its equals sign, or returns "" if there is none.
func (r *pythonReader) keyword() string {
	from := r.at
	if name := r.name(); name != "" && r.take('=') {
		return name
	}
	r.at = from
	return ""
}

func (r *pythonReader) value(depth int) (json.RawMessage, error) {
	r.space()
	if depth > maxNesting {
		return nil, r.fault("the arguments are nested too deeply")
	}
	if r.at == len(r.text) {
		return nil, r.fault("a value is missing")
	}
	switch c := r.text[r.at]; {
	case c == '\'' || c == '"':
		text, err := r.string(c)
		return jsonText(text), err
	case c == '[':
		return r.items('[', ']', func() (json.RawMessage, error) { return r.value(depth + 1) })
	case c == '{':
		return r.items('{', '}', func() (json.RawMessage, error) { return r.member(depth + 1) })
	case c == '-' || c == '+' || c == '.' || '0' <= c && c <= '9':
		return r.number()
	}
	from := r.at
	switch r.name() {
	case "True":
		return json.RawMessage("true"), nil
	case "False":
		return json.RawMessage("false"), nil
	case "None":
		return json.RawMessage("null"), nil
	}
	r.at = from
	return nil, r.fault("an argument is no literal")
}

// items reads the content between two brackets.
func (r *pythonReader) items(begin, end byte, item func() (json.RawMessage, error)) (json.RawMessage, error) {
	r.take(begin)
	out := []byte{begin}
	for !r.take(end) {
		if len(out) > 1 {
			if !r.take(',') {
				return nil, r.fault("a comma is missing")
			}
			if r.take(end) {
				break
			}
			out = append(out, ',')
		}
		one, err := item()
		if err != nil {
			return nil, err
		}
		out = append(out, one...)
	}
	return append(out, end), nil
}

func (r *pythonReader) member(depth int) (json.RawMessage, error) {
	key, err := r.value(depth)
	if err != nil {
		return nil, err
	}
	if key[0] != '"' {
		return nil, r.fault("a key is no text")
	}
	if !r.take(':') {
		return nil, r.fault("a colon is missing")
	}
	value, err := r.value(depth)
	return append(append(key, ':'), value...), err
}

// number reads a number that is valid in JSON as well. It keeps the text, because 1 and 1.0 differ
// in the results of functions.
func (r *pythonReader) number() (json.RawMessage, error) {
	from := r.at
	for r.at < len(r.text) && strings.IndexByte("+-.eE0123456789", r.text[r.at]) >= 0 {
		r.at++
	}
	text := r.text[from:r.at]
	if !json.Valid([]byte(text)) {
		r.at = from
		return nil, r.fault("a number is not written as in JSON")
	}
	return json.RawMessage(text), nil
}

// string reads a quoted string with the escapes that Python and JSON share.
func (r *pythonReader) string(quote byte) (string, error) {
	r.at++
	var out strings.Builder
	for r.at < len(r.text) {
		c := r.text[r.at]
		r.at++
		switch {
		case c == quote:
			if !utf8.ValidString(out.String()) {
				return "", r.fault("a text is not UTF-8")
			}
			return out.String(), nil
		case c == '\n':
			return "", r.fault("a text ends with its line")
		case c != '\\':
			out.WriteByte(c)
		case r.at == len(r.text):
			return "", r.fault("a text has no end")
		default:
			if err := r.escape(&out); err != nil {
				return "", err
			}
		}
	}
	return "", r.fault("a text has no end")
}

// escape reads the character after a backslash.
func (r *pythonReader) escape(out *strings.Builder) error {
	c := r.text[r.at]
	r.at++
	if digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[c]; digits > 0 {
		if r.at+digits > len(r.text) {
			return r.fault("a text has no end")
		}
		code, err := strconv.ParseUint(r.text[r.at:r.at+digits], 16, 31)
		if err != nil || !utf8.ValidRune(rune(code)) {
			return r.fault("an escape is no character")
		}
		r.at += digits
		out.WriteRune(rune(code))
		return nil
	}
	switch at := strings.IndexByte(`\'"nrtabfv`, c); {
	case at >= 0:
		out.WriteByte("\\'\"\n\r\t\a\b\f\v"[at])
	case '0' <= c && c <= '7' || c == '\n' || c == 'N':
		return r.fault("an escape is not supported")
	default: // Python keeps other backslashes
		out.WriteByte('\\')
		out.WriteByte(c)
	}
	return nil
}
