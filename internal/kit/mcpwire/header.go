package mcpwire

import (
	"bytes"
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"

	"github.com/callyard/callyard/internal/kit/rawjson"
)

// maxSchemaDepth is how deep properties with headers may lie in a schema.
const maxSchemaDepth = 32

// annotation is the keyword of a schema that names the header of a property.
const annotation = "x-mcp-header"

// ParamHeader is an argument that a tool wants repeated in an HTTP header.
type ParamHeader struct {
	Path []string // of property names into the arguments
	Name string   // of the header, in canonical form
}

// ParamHeaders returns the arguments that a tool wants repeated, as the schema of its
// input says. Names that no header can have are passed over.
func ParamHeaders(inputSchema []byte) []ParamHeader {
	if !bytes.Contains(inputSchema, []byte(annotation)) {
		return nil
	}
	return paramHeaders(nil, inputSchema, nil, 0)
}

func paramHeaders(list []ParamHeader, object []byte, path []string, depth int) []ParamHeader {
	if depth > maxSchemaDepth {
		return list
	}
	rawjson.Members(rawjson.Get(object, "properties"), func(property string, sub []byte) {
		here := append(path[:len(path):len(path)], property)
		if name, ok := rawjson.Text(rawjson.Get(sub, annotation)); ok && IsToken(name) {
			list = append(list, ParamHeader{Path: here, Name: http.CanonicalHeaderKey(headerParamPrefix + name)})
		}
		list = paramHeaders(list, sub, here, depth+1)
	})
	return list
}

// Argument returns the argument that the header repeats, nil where there is none.
func (h *ParamHeader) Argument(arguments []byte) []byte {
	for _, property := range h.Path {
		arguments = rawjson.Get(arguments, property)
	}
	return arguments
}

// HeaderText returns the text that a header shows for a JSON value: strings, booleans and
// numbers have one. Whole numbers are written without fraction and exponent.
func HeaderText(value []byte) (text string, ok bool) {
	if len(value) == 0 {
		return "", false
	}
	switch value[0] {
	case '"':
		return rawjson.Text(value)
	case 'n', '{', '[':
		return "", false
	}
	if n, err := strconv.ParseInt(string(value), 10, 64); err == nil {
		return strconv.FormatInt(n, 10), true
	}
	if f, err := strconv.ParseFloat(string(value), 64); err == nil && f == float64(int64(f)) {
		return strconv.FormatInt(int64(f), 10), true
	}
	return string(value), true
}

// What stands around a value in base64.
const (
	base64Prefix = "=?base64?"
	base64Suffix = "?="
)

// EncodeHeader returns a text as a header can carry it: in base64 where it would not come
// over as it is.
func EncodeHeader(text string) string {
	plain := text == strings.Trim(text, " \t") && !(strings.HasPrefix(text, base64Prefix) && strings.HasSuffix(text, base64Suffix))
	for i := 0; plain && i < len(text); i++ {
		plain = text[i] >= ' ' && text[i] <= '~'
	}
	if plain {
		return text
	}
	return base64Prefix + base64.StdEncoding.EncodeToString([]byte(text)) + base64Suffix
}

// DecodeHeader returns the text that a header carries; ok is false for base64 that is none.
func DecodeHeader(value string) (text string, ok bool) {
	inner, ok := strings.CutPrefix(value, base64Prefix)
	if !ok || !strings.HasSuffix(inner, base64Suffix) {
		return value, true
	}
	raw, err := base64.StdEncoding.DecodeString(strings.TrimSuffix(inner, base64Suffix))
	return string(raw), err == nil
}

// IsToken reports whether s is a token of HTTP, as the names of headers are (RFC 9110, 5.6.2).
func IsToken(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && !strings.ContainsRune("!#$%&'*+-.^_`|~", c)
	})
}
