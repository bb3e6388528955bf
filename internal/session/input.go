package session

import (
	"bytes"
	"strings"

	"github.com/callyard/callyard/internal/kit/mcpwire"
	"github.com/callyard/callyard/internal/kit/rawjson"
	"github.com/callyard/callyard/pkg/schema"
)

// noCapabilities is the part of an envelope that declares that no caller can be asked for input.
const noCapabilities = `"` + mcpwire.MetaClientCapabilities + `":{}`

// of returns the envelope with the capabilities from the caller's _meta, so that a server asks
// only for input that the caller can provide.
func (e envelope) of(meta []byte) envelope {
	if e.fixed == "" || len(meta) == 0 {
		return e
	}
	var capabilities []byte
	rawjson.Members(meta, func(key string, value []byte) {
		if key == mcpwire.MetaClientCapabilities && value[0] == '{' {
			capabilities = value
		}
	})
	if capabilities != nil {
		e.fixed = strings.Replace(e.fixed, noCapabilities, `"`+mcpwire.MetaClientCapabilities+`":`+string(capabilities), 1)
	}
	return e
}

// appendCallWith appends the method and the params of a tools/call that has more than a name and
// arguments. Members that only servers of the modern era understand are sent only to those.
func appendCallWith(dst []byte, e envelope, id int64, req *Request) []byte {
	dst = append(dst, `,"method":"`+schema.MethodCallTool+`","params":{"name":`...)
	dst = rawjson.AppendText(dst, req.Name)
	arguments := req.Params
	if len(arguments) == 0 {
		arguments = []byte(`{}`)
	}
	dst = rawjson.AppendMember(dst, "arguments", arguments)
	var meta []byte
	modern := e.fixed != ""
	rawjson.Members(req.Extra, func(key string, value []byte) {
		switch {
		case key == "_meta":
			meta = value
		case modern && (key == "inputResponses" || key == "requestState"):
			dst = rawjson.AppendMember(dst, key, value)
		}
	})
	e = e.of(meta)
	if inner := e.metaWith(meta, id, req); len(inner) > 1 {
		dst = rawjson.AppendMember(dst, "_meta", append(inner, '}'))
	}
	return append(dst, '}')
}

// mayAsk reports whether the request declares client capabilities, so that the server may ask for
// input.
func (r *Request) mayAsk() bool {
	where := r.Extra
	if r.method() != schema.MethodCallTool {
		where = r.Params
	}
	return bytes.Contains(where, []byte(mcpwire.MetaClientCapabilities))
}

// asked turns a request for input into an error if the caller cannot answer it.
func (s *session) asked(req *Request, o Outcome) Outcome {
	if !o.Input || req.mayAsk() {
		return o
	}
	return Outcome{Started: true, Err: schema.Errorf(schema.KindInputRequired,
		"The server %q requires more input to continue, which this kind of call cannot provide.", s.pool.cfg.Spec.ID)}
}
