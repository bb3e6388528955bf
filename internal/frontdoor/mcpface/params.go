package mcpface

import (
	"net/http"
	"strconv"
	"strings"
)

// paramHeader is an argument that a tool wants repeated in a header.
type paramHeader struct {
	path []string // of property names into the arguments
	name string   // canonical header name
}

// schemaHeaders collects the annotated properties of the schema of an object.
func schemaHeaders(object []byte, path []string, list []paramHeader, depth int) []paramHeader {
	if depth > 32 {
		return list
	}
	each(get(object, "properties"), func(property string, sub []byte) {
		if !isObject(sub) {
			return
		}
		here := append(path[:len(path):len(path)], property)
		if name := getString(sub, "x-mcp-header"); name != "" && !strings.ContainsAny(name, " \t\r\n:") {
			list = append(list, paramHeader{path: here, name: http.CanonicalHeaderKey("Mcp-Param-" + name)})
		}
		list = schemaHeaders(sub, here, list, depth+1)
	})
	return list
}

// checkParamHeaders holds the headers that repeat arguments against these.
func (f *Face) checkParamHeaders(x *exchange, to target, arguments []byte) *fault {
	for _, want := range f.view(x.mount).headers[to] {
		value := arguments
		for _, property := range want.path {
			if isObject(value) {
				value = get(value, property)
			} else {
				value = nil
			}
		}
		text, there := headerText(value)
		given := x.r.Header.Values(want.name)
		mismatch := &fault{Code: codeHeaderMismatch, Message: "The header " + want.name + " does not repeat the argument " + strings.Join(want.path, ".") + "."}
		switch {
		case len(given) > 1, there != (len(given) == 1):
			return mismatch
		case there:
			decoded, ok := decodeHeader(given[0])
			if !ok || decoded != text && !sameNumber(decoded, value) {
				return mismatch
			}
		}
	}
	return nil
}

// headerText returns a string, a boolean or a whole number as a header shows it.
func headerText(value []byte) (string, bool) {
	if len(value) == 0 {
		return "", false
	}
	switch value[0] {
	case '"':
		return str(value)
	case 't', 'f':
		return string(value), true
	case 'n', '{', '[':
		return "", false
	}
	return string(value), true
}

// sameNumber says that a header shows a number in another way than the body.
func sameNumber(text string, value []byte) bool {
	if len(value) == 0 || value[0] != '-' && (value[0] < '0' || value[0] > '9') {
		return false
	}
	a, err1 := strconv.ParseFloat(text, 64)
	b, err2 := strconv.ParseFloat(string(value), 64)
	return err1 == nil && err2 == nil && a == b
}
