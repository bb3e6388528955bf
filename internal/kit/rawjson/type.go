package rawjson

import "bytes"

// TypeOf returns the JSON Schema type of a JSON value without leading white space. A number without
// fraction and exponent is an integer. It returns "" if there is no value.
func TypeOf(value []byte) string {
	if len(value) == 0 {
		return ""
	}
	switch value[0] {
	case '{':
		return "object"
	case '[':
		return "array"
	case '"':
		return "string"
	case 't', 'f':
		return "boolean"
	case 'n':
		return "null"
	}
	if bytes.ContainsAny(value, ".eE") {
		return "number"
	}
	return "integer"
}
