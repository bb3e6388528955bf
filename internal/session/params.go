package session

import (
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/callyard/callyard/internal/kit/mcpwire"
	"github.com/callyard/callyard/internal/kit/rawjson"
	"github.com/callyard/callyard/pkg/schema"
)

// paramHeaders maps a tool of a remote server of the modern era to the arguments that it
// wants repeated in headers, from x-mcp-header in its schema.
type paramHeaders map[string][]mcpwire.ParamHeader

// newParamHeaders reads the schemas of the tools. It returns nil if no tool wants headers.
func newParamHeaders(defs *schema.Definitions) *paramHeaders {
	found := paramHeaders{}
	for _, tool := range defs.Tools {
		var name string
		var list []mcpwire.ParamHeader
		rawjson.Members(tool, func(key string, value []byte) {
			switch key {
			case "name":
				_ = json.Unmarshal(value, &name) // a tool without a name cannot be called
			case "inputSchema":
				list = mcpwire.ParamHeaders(value)
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

// set adds the headers for a call. SEP-2243 allows only whole numbers.
func (p *paramHeaders) set(h http.Header, req *Request) {
	if p == nil {
		return
	}
	for _, want := range (*p)[req.Name] {
		value := want.Argument(req.Params)
		text, ok := mcpwire.HeaderText(value)
		if ok && (value[0] == '-' || value[0] >= '0' && value[0] <= '9') {
			_, err := strconv.ParseInt(text, 10, 64)
			ok = err == nil
		}
		if ok {
			h[want.Name] = []string{mcpwire.EncodeHeader(text)}
		}
	}
}
