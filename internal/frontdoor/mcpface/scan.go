package mcpface

import (
	"encoding/json"
	"strconv"
)

// each calls visit with each member of a JSON object, names as they decode and
// values as they stand. It returns false where the text is no object or breaks
// off. The grammar inside of values is not checked: what comes from outside was
// validated, what comes from a worker was checked there.
func each(object []byte, visit func(key string, value []byte)) bool {
	return members(object, func(key string, from, to int) { visit(key, object[from:to]) })
}

// members is each with the bounds of the values.
func members(text []byte, visit func(key string, from, to int)) bool {
	i := space(text, 0)
	if i >= len(text) || text[i] != '{' {
		return false
	}
	if i = space(text, i+1); i < len(text) && text[i] == '}' {
		return true
	}
	for {
		if i = space(text, i); i >= len(text) || text[i] != '"' {
			return false
		}
		end, plain := skipString(text, i)
		if end < 0 {
			return false
		}
		key := keyName(text[i:end], plain)
		if i = space(text, end); i >= len(text) || text[i] != ':' {
			return false
		}
		from := space(text, i+1)
		to := skip(text, from)
		if to < 0 {
			return false
		}
		visit(key, from, to)
		if i = space(text, to); i >= len(text) {
			return false
		}
		switch text[i] {
		case ',':
			i++
		case '}':
			return true
		default:
			return false
		}
	}
}

// keyName spares the allocation for names that each request has.
func keyName(quoted []byte, plain bool) string {
	if !plain {
		var s string
		_ = json.Unmarshal(quoted, &s) // a name that does not decode is nobody's
		return s
	}
	switch name := quoted[1 : len(quoted)-1]; string(name) {
	case "jsonrpc":
		return "jsonrpc"
	case "id":
		return "id"
	case "method":
		return "method"
	case "params":
		return "params"
	case "name":
		return "name"
	case "arguments":
		return "arguments"
	case "_meta":
		return "_meta"
	case metaProtocol:
		return metaProtocol
	case metaCapabilities:
		return metaCapabilities
	case metaClientInfo:
		return metaClientInfo
	case "progressToken":
		return "progressToken"
	default:
		return string(name)
	}
}

func space(text []byte, i int) int {
	for i < len(text) && (text[i] == ' ' || text[i] == '\n' || text[i] == '\t' || text[i] == '\r') {
		i++
	}
	return i
}

// skipString returns the index behind the string that begins at i, -1 where it
// has no end. plain says that it holds no escape.
func skipString(text []byte, i int) (end int, plain bool) {
	plain = true
	for i++; i < len(text); i++ {
		switch text[i] {
		case '"':
			return i + 1, plain
		case '\\':
			plain = false
			i++
		}
	}
	return -1, plain
}

// skip returns the index behind the value that begins at i, -1 where it has no end.
func skip(text []byte, i int) int {
	if i >= len(text) {
		return -1
	}
	switch text[i] {
	case '"':
		end, _ := skipString(text, i)
		return end
	case '{', '[':
		for depth := 0; i < len(text); {
			switch text[i] {
			case '"':
				end, _ := skipString(text, i)
				if end < 0 {
					return -1
				}
				i = end
				continue
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					return i + 1
				}
			}
			i++
		}
		return -1
	}
	from := i
	for i < len(text) && text[i] != ',' && text[i] != '}' && text[i] != ']' && text[i] != ' ' && text[i] != '\n' && text[i] != '\r' && text[i] != '\t' {
		i++
	}
	if i == from {
		return -1
	}
	return i
}

// get returns a member of an object, nil where it is not there.
func get(object []byte, name string) (found []byte) {
	if len(object) > 0 {
		each(object, func(key string, value []byte) {
			if key == name {
				found = value
			}
		})
	}
	return found
}

// str returns the string that a value is; ok is false for other values.
func str(value []byte) (s string, ok bool) {
	if len(value) < 2 || value[0] != '"' {
		return "", false
	}
	for _, c := range value {
		if c == '\\' {
			err := json.Unmarshal(value, &s)
			return s, err == nil
		}
	}
	return string(value[1 : len(value)-1]), true
}

// getString is get for strings; "" for what is none.
func getString(object []byte, name string) string {
	s, _ := str(get(object, name))
	return s
}

// isObject reports whether a value is an object.
func isObject(value []byte) bool { return len(value) > 0 && value[0] == '{' }

// quote returns s as a JSON string.
func quote(s string) []byte { return appendQuoted(nil, s) }

func appendQuoted(dst []byte, s string) []byte {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < 0x20 || c > 0x7e || c == '"' || c == '\\' {
			quoted, _ := json.Marshal(s) // a string always marshals
			return append(dst, quoted...)
		}
	}
	return append(append(append(dst, '"'), s...), '"')
}

// appendMember appends a member to an object that dst holds open.
func appendMember(dst []byte, name string, value []byte) []byte {
	if n := len(dst); n > 0 && dst[n-1] != '{' {
		dst = append(dst, ',')
	}
	dst = append(appendQuoted(dst, name), ':')
	return append(dst, value...)
}

func jsonInt(n int64) []byte { return strconv.AppendInt(nil, n, 10) }
