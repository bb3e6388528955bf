package mcpwire

import (
	"bytes"
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"

	"github.com/callyard/callyard/internal/kit/rawjson"
)

// maxSchemaDepth limits the depth at which a schema is searched for properties with headers.
const maxSchemaDepth = 32

// annotation is the schema keyword that names the header of a property.
const annotation = "x-mcp-header"

// ParamHeader is a tool argument that is repeated in an HTTP header.
type ParamHeader struct {
	Path []string // property names that lead to the argument
	Name string   // name of the header, in canonical form
}

// ParamHeaders returns the arguments that the input schema of a tool maps to headers. It skips
// invalid header names.
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

// Argument returns the argument that the header repeats, or nil if it is absent.
func (h *ParamHeader) Argument(arguments []byte) []byte {
	for _, property := range h.Path {
		arguments = rawjson.Get(arguments, property)
	}
	return arguments
}

// HeaderText returns the header text of a JSON value. Only strings, booleans and numbers have one.
// Whole numbers are written without fraction and exponent.
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

// Markers around a value in base64.
const (
	base64Prefix = "=?base64?"
	base64Suffix = "?="
)

// EncodeHeader returns a text as a header value, in base64 if it is not allowed verbatim.
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

// DecodeHeader returns the text of a header value. ok is false for invalid base64.
func DecodeHeader(value string) (text string, ok bool) {
	inner, ok := strings.CutPrefix(value, base64Prefix)
	if !ok || !strings.HasSuffix(inner, base64Suffix) {
		return value, true
	}
	raw, err := base64.StdEncoding.DecodeString(strings.TrimSuffix(inner, base64Suffix))
	return string(raw), err == nil
}

// IsToken reports whether s is an HTTP token, such as a header name (RFC 9110, 5.6.2).
func IsToken(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && !strings.ContainsRune("!#$%&'*+-.^_`|~", c)
	})
}
