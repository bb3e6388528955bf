package session

import "bytes"

// WithMember returns a JSON object with the member added at its end; its other
// bytes stay. A member that has the name already is left out: it is not the
// server's to say. object is a result as a session gave it.
func WithMember(object []byte, name string, value []byte) []byte {
	clash, count := false, 0
	members(object, func(key string, _ []byte) {
		count++
		clash = clash || key == name
	})
	if clash {
		object, count = without(object, name)
	}
	end := bytes.LastIndexByte(object, '}')
	if end < 0 {
		return object
	}
	out := make([]byte, 0, len(object)+len(name)+len(value)+4)
	out = append(out, object[:end]...)
	if count > 0 {
		out = append(out, ',')
	}
	out = appendString(out, name)
	out = append(append(out, ':'), value...)
	return append(out, object[end:]...)
}

// without returns the object less its members of that name, and how many are left.
func without(object []byte, name string) (out []byte, count int) {
	s := scanner{text: object}
	from := bytes.IndexByte(object, '{') + 1
	out = append(out, '{')
	s.object(func(key string, _, to int) {
		member := bytes.TrimLeft(object[from:to], " \t\r\n,")
		from = to
		if key == name {
			return
		}
		if count++; count > 1 {
			out = append(out, ',')
		}
		out = append(out, member...)
	}, nil)
	return append(out, '}'), count
}
