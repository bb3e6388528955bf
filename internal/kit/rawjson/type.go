package rawjson

import "strings"

// TypeOf returns the word of JSON Schema for the type of a JSON value without white space before
// it: a number without fraction and exponent is an integer. It returns "" for no value.
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
	if strings.ContainsAny(string(value), ".eE") {
		return "number"
	}
	return "integer"
}
