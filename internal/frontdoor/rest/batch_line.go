package rest

import (
	"bytes"
	"time"

	"github.com/callyard/callyard/internal/batch"
	"github.com/callyard/callyard/pkg/schema/validate"
)

// readPlainItem reads a call of a batch as almost all are written: the known members
// only, names and texts without escapes, arguments that are an object. It checks what
// readItem checks. ok is false for all others, which readItem reads, or says what is
// wrong with them.
func (a *API) readPlainItem(raw []byte) (rec batch.Line, ok bool) {
	if validate.Value(raw, a.limits.ArgumentBytes+bodyRoom, a.limits.ArgumentDepth+1) != nil {
		return rec, false
	}
	var arguments []byte
	ok = eachMember(raw, func(name, value []byte) bool {
		var into *string
		switch string(name) {
		case "custom_id":
			into = &rec.CustomID
		case "server":
			into = &rec.Server
		case "tool":
			into = &rec.Tool
		case "arguments":
			arguments = value
			return value[0] == '{'
		default:
			return false
		}
		if value[0] != '"' || bytes.IndexByte(value, '\\') >= 0 {
			return false
		}
		*into = string(value[1 : len(value)-1])
		return true
	})
	if !ok || rec.Server == "" || rec.Tool == "" || len(rec.CustomID) > maxCustomID {
		return rec, false
	}
	if arguments == nil {
		arguments = []byte("{}")
	}
	rec.Accepted, rec.Arguments = time.Now().UTC(), bytes.Clone(arguments)
	return rec, true
}

// eachMember calls f with the name, without its quotes, and the bytes of each member
// of the object in raw, until f returns false. raw must be valid JSON. It returns
// false when f did, and for what is no object or has a name with escapes.
func eachMember(raw []byte, f func(name, value []byte) bool) bool {
	i := jsonSpace(raw, 0)
	if i == len(raw) || raw[i] != '{' {
		return false
	}
	for i = jsonSpace(raw, i+1); raw[i] != '}'; {
		end := jsonEnd(raw, i)
		name := raw[i+1 : end-1]
		if bytes.IndexByte(name, '\\') >= 0 {
			return false
		}
		i = jsonSpace(raw, jsonSpace(raw, end)+1) // past the colon
		end = jsonEnd(raw, i)
		if !f(name, raw[i:end]) {
			return false
		}
		if i = jsonSpace(raw, end); raw[i] == ',' {
			i = jsonSpace(raw, i+1)
		}
	}
	return true
}

// jsonSpace returns the index of the first byte from i on that is no space.
func jsonSpace(raw []byte, i int) int {
	for i < len(raw) && (raw[i] == ' ' || raw[i] == '\t' || raw[i] == '\n' || raw[i] == '\r') {
		i++
	}
	return i
}

// jsonEnd returns the index behind the value that begins at i; raw is valid JSON.
func jsonEnd(raw []byte, i int) int {
	for depth := 0; ; {
		switch raw[i] {
		case '"':
			i = jsonTextEnd(raw, i)
		case '{', '[':
			depth++
			i++
		case '}', ']':
			depth--
			i++
		case ',', ':', ' ', '\t', '\n', '\r':
			i++
		default: // a number, true, false, null
			for i < len(raw) && raw[i] != ',' && raw[i] != '}' && raw[i] != ']' && raw[i] > ' ' {
				i++
			}
		}
		if depth == 0 {
			return i
		}
	}
}

// jsonTextEnd returns the index behind the string that begins at i.
func jsonTextEnd(raw []byte, i int) int {
	for i++; ; i++ {
		n := bytes.IndexByte(raw[i:], '"')
		escapes := 0
		for i += n; raw[i-1-escapes] == '\\'; {
			escapes++
		}
		if escapes%2 == 0 {
			return i + 1
		}
	}
}
