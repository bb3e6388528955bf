package mcp

import (
	"github.com/callyard/callyard/internal/kit/rawjson"
)

// Short names for the functions of [rawjson].

func each(object []byte, visit func(key string, value []byte)) {
	rawjson.Members(object, visit)
}

func members(text []byte, visit func(key string, from, to int)) {
	rawjson.Bounds(text, visit)
}

func get(object []byte, name string) []byte { return rawjson.Get(object, name) }

func str(value []byte) (s string, ok bool) { return rawjson.Text(value) }

// getString returns a string member of an object, or "" if it is absent or not a string.
func getString(object []byte, name string) string {
	s, _ := str(get(object, name))
	return s
}

// isObject reports whether a validated JSON value is an object.
func isObject(value []byte) bool { return len(value) > 0 && value[0] == '{' }

// quote returns s as a JSON string.
func quote(s string) []byte { return appendQuoted(nil, s) }

func appendQuoted(dst []byte, s string) []byte { return rawjson.AppendText(dst, s) }

func appendMember(dst []byte, name string, value []byte) []byte {
	return rawjson.AppendMember(dst, name, value)
}
