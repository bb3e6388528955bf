package session

import (
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/callyard/callyard/internal/kit/rawjson"
	"github.com/callyard/callyard/pkg/schema"
)

// paramHeaders knows which arguments of which tools a remote server of the
// modern era wants repeated in headers, from x-mcp-header in their schemas.
type paramHeaders map[string][]paramHeader

type paramHeader struct {
	path []string // of property names into the arguments
	name string   // canonical header name
}

// newParamHeaders reads the schemas of the tools; nil where no tool wants any.
func newParamHeaders(defs *schema.Definitions) *paramHeaders {
	found := paramHeaders{}
	for _, tool := range defs.Tools {
		var name string
		var list []paramHeader
		rawjson.Members(tool, func(key string, value []byte) {
			switch key {
			case "name":
				_ = json.Unmarshal(value, &name) // a tool without a name cannot be called
			case "inputSchema":
				list = schemaHeaders(value, nil, nil, 0)
			}
		})
		if len(list) > 0 {
			found[name] = list
		}
	}
	if len(found) == 0 {
		return nil
	}
	return &found
}

// schemaHeaders collects the annotated properties of an object schema.
func schemaHeaders(object []byte, path []string, list []paramHeader, depth int) []paramHeader {
	if depth > 32 {
		return list
	}
	rawjson.Members(object, func(key string, properties []byte) {
		if key != "properties" {
			return
		}
		rawjson.Members(properties, func(property string, sub []byte) {
			here := append(path[:len(path):len(path)], property)
			rawjson.Members(sub, func(key string, value []byte) {
				var name string
				if key == "x-mcp-header" && json.Unmarshal(value, &name) == nil && isToken(name) {
					list = append(list, paramHeader{path: here, name: http.CanonicalHeaderKey("Mcp-Param-" + name)})
				}
			})
			list = schemaHeaders(sub, here, list, depth+1)
		})
	})
	return list
}

// set adds the headers for a call.
func (p *paramHeaders) set(h http.Header, req *Request) {
	if p == nil {
		return
	}
	for _, want := range (*p)[req.Name] {
		value := req.Params
		for _, property := range want.path {
			var inner []byte
			rawjson.Members(value, func(key string, v []byte) {
				if key == property {
					inner = v
				}
			})
			value = inner
		}
		if text, ok := headerText(value); ok {
			h[want.name] = []string{headerValue(text)}
		}
	}
}

// headerText returns a string, a boolean or a whole number as a header shows it.
func headerText(value []byte) (string, bool) {
	if len(value) == 0 {
		return "", false
	}
	switch value[0] {
	case '"':
		var s string
		err := json.Unmarshal(value, &s)
		return s, err == nil
	case 't', 'f':
		return string(value), true
	case 'n', '{', '[':
		return "", false
	}
	if n, err := strconv.ParseInt(string(value), 10, 64); err == nil {
		return strconv.FormatInt(n, 10), true
	}
	f, err := strconv.ParseFloat(string(value), 64)
	if err != nil || f != float64(int64(f)) {
		return "", false
	}
	return strconv.FormatInt(int64(f), 10), true
}

// isToken reports whether s can be part of a header name.
func isToken(s string) bool {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c <= ' ' || c >= 0x7f || c == '"' || c == '(' || c == ')' || c == ',' || c == '/' || c >= ':' && c <= '@' || c >= '[' && c <= ']' || c == '{' || c == '}' {
			return false
		}
	}
	return s != ""
}
