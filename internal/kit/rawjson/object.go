package rawjson

import (
	"bytes"
	"encoding/json"
	"slices"
)

// Members calls visit with the decoded name and the value of each member of an object, in the
// order of the text. It reports whether text is exactly one object.
func Members(text []byte, visit func(name string, value []byte)) bool {
	return Bounds(text, func(name string, from, to int) { visit(name, text[from:to]) })
}

// Bounds is like [Members], with the bounds of the values in the text.
func Bounds(text []byte, visit func(name string, from, to int)) bool {
	s := Scanner{text: text}
	return s.Members(visit) && s.End()
}

// Members reads an object, and calls visit with the name and the bounds of the value of each
// member. It returns false if the text is not an object.
func (s *Scanner) Members(visit func(name string, from, to int)) bool {
	return s.Object(func(name string) bool {
		from := s.at
		if !s.Value() {
			return false
		}
		visit(name, from, s.at)
		return true
	})
}

// Elements calls visit with the bounds of each element of an array. It reports whether text is
// exactly one array.
func Elements(text []byte, visit func(from, to int)) bool {
	s := Scanner{text: text}
	return s.Array(func() bool {
		from := s.at
		if !s.Value() {
			return false
		}
		visit(from, s.at)
		return true
	}) && s.End()
}

// Get returns a member of an object, or nil. If there are several of that name, it returns the
// last.
func Get(object []byte, name string) (found []byte) {
	if len(object) > 0 {
		Members(object, func(have string, value []byte) {
			if have == name {
				found = value
			}
		})
	}
	return found
}

// IsObject reports whether text is exactly one object.
func IsObject(text []byte) bool {
	s := Scanner{text: text}
	return s.Peek() == '{' && s.Value() && s.End()
}

// Text returns the decoded string. ok is false for values of other types.
func Text(value []byte) (text string, ok bool) {
	if len(value) < 2 || value[0] != '"' {
		return "", false
	}
	if bytes.IndexByte(value, '\\') >= 0 {
		err := json.Unmarshal(value, &text)
		return text, err == nil
	}
	return string(value[1 : len(value)-1]), true
}

// AppendText appends text as a JSON string.
func AppendText(dst []byte, text string) []byte {
	for i := 0; i < len(text); i++ {
		if c := text[i]; c < 0x20 || c > 0x7e || c == '"' || c == '\\' {
			quoted, _ := json.Marshal(text) // a string always marshals
			return append(dst, quoted...)
		}
	}
	return append(append(append(dst, '"'), text...), '"')
}

// AppendMember appends a member to the unclosed object in dst.
func AppendMember(dst []byte, name string, value []byte) []byte {
	if n := len(dst); n > 0 && dst[n-1] != '{' {
		dst = append(dst, ',')
	}
	return append(append(AppendText(dst, name), ':'), value...)
}

// With returns a copy of an object with the member added at its end. Existing members of that name
// are removed, because a reader must not find two. All other bytes are unchanged. If text is not an
// object, it is returned unchanged.
func With(object []byte, name string, value []byte) []byte {
	clash, count := false, 0
	if !Members(object, func(have string, _ []byte) {
		if have == name {
			clash = true
		} else {
			count++
		}
	}) {
		return object
	}
	if clash {
		object = Without(object, name)
	}
	end := bytes.LastIndexByte(object, '}')
	out := append(make([]byte, 0, len(object)+len(name)+len(value)+4), object[:end]...)
	if count > 0 {
		out = append(out, ',')
	}
	out = append(append(AppendText(out, name), ':'), value...)
	return append(out, object[end:]...)
}

// Without returns a copy of an object without the members of these names. The bytes of all others
// are unchanged.
func Without(object []byte, names ...string) []byte {
	out := append(make([]byte, 0, len(object)), '{')
	end := bytes.IndexByte(object, '{') + 1
	Bounds(object, func(have string, _, to int) {
		member := bytes.TrimLeft(object[end:to], " \t\r\n,")
		if end = to; slices.Contains(names, have) {
			return
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, member...)
	})
	return append(out, bytes.TrimLeft(object[end:], " \t\r\n,")...)
}
