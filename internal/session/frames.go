package session

import (
	"bytes"
	"math"
	"strconv"

	"github.com/callyard/callyard/internal/kit/mcpwire"
	"github.com/callyard/callyard/internal/kit/rawjson"
	"github.com/callyard/callyard/pkg/schema"
)

// firstID is the first of our request ids. The go-sdk counts its own from 1, so the two never
// collide, and a double represents both exactly.
const firstID = int64(1) << 32

// ownRequestID returns the id in raw if it is one of ours, else 0. Some servers hold ids as
// floating-point numbers and write them back as such.
func ownRequestID(raw []byte) int64 {
	if len(raw) == 0 || raw[0]-'1' > 8 {
		return 0
	}
	n := int64(0)
	for i, c := range raw {
		if c-'0' > 9 || i > 17 {
			n, _ = wholeNumber(raw)
			break
		}
		n = n*10 + int64(c-'0')
	}
	if n < firstID {
		return 0
	}
	return n
}

// wholeNumber returns the value of a number without a fraction, such as 1 for 1.0. ok is false, and the
// value 0, for any other text and for numbers that a float64 may not hold exactly.
func wholeNumber(raw []byte) (n int64, ok bool) {
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) >= 1<<53 {
		return 0, false
	}
	return int64(f), true
}

// envelope holds the members that a session adds to _meta in the params of each request.
type envelope struct {
	// fixed holds the members that the modern era requires, without braces. It is empty in
	// the legacy era.
	fixed string
	// tells means that the session, clock and seed of a request are sent with it.
	tells bool
}

// modernEnvelope returns the envelope for a protocol revision of the modern era.
func modernEnvelope(protocol, name, version string) envelope {
	b := rawjson.AppendText([]byte(`"`+mcpwire.MetaProtocolVersion+`":`), protocol)
	b = append(b, `,`+noCapabilities+`,"`+mcpwire.MetaClientInfo+`":{"name":`...)
	b = rawjson.AppendText(b, name)
	b = append(b, `,"version":`...)
	b = rawjson.AppendText(b, version)
	return envelope{fixed: string(append(b, '}'))}
}

// ownMeta reports whether key is a member of _meta that a session writes itself.
func ownMeta(key string, req *Request) bool {
	switch key {
	case mcpwire.MetaProtocolVersion, mcpwire.MetaClientCapabilities, mcpwire.MetaClientInfo, mcpwire.MetaLogLevel:
		// They belong to another connection. The capabilities of a caller that can be asked
		// were put into the envelope.
		return true
	case "traceparent":
		return req.Trace.Parent != ""
	case "tracestate":
		return req.Trace.State != ""
	case MetaSession, MetaClock, MetaSeed:
		// Only the session may set these: a caller that names another caller's session would
		// get its state.
		return true
	case "progressToken":
		// A token of the caller has no meaning on this connection.
		return true
	}
	return false
}

// appendRequest appends the JSON-RPC request to dst. Arguments are copied unchanged.
func appendRequest(dst []byte, e envelope, id int64, req *Request) []byte {
	dst = append(dst, `{"jsonrpc":"2.0","id":`...)
	dst = strconv.AppendInt(dst, id, 10)
	if req.method() != schema.MethodCallTool {
		dst = append(dst, `,"method":`...)
		dst = rawjson.AppendText(dst, req.Method)
		if len(req.Params) > 0 || e.needed(req) {
			dst = append(dst, `,"params":`...)
			dst = appendParams(dst, e, id, req)
		}
		return append(dst, '}')
	}
	if len(req.Extra) > 0 {
		return append(appendCallWith(dst, e, id, req), '}')
	}
	dst = append(dst, `,"method":"`+schema.MethodCallTool+`","params":{"name":`...)
	dst = rawjson.AppendText(dst, req.Name)
	dst = append(dst, `,"arguments":`...)
	if len(req.Params) == 0 {
		dst = append(dst, `{}`...)
	} else {
		dst = append(dst, req.Params...)
	}
	if e.needed(req) {
		dst = append(dst, `,"_meta":{`...)
		dst = e.append(dst, id, req)
		dst = append(dst, '}')
	}
	return append(dst, `}}`...)
}

// appendParams appends a whole params object and adds our members to its _meta. The other
// members are copied unchanged.
func appendParams(dst []byte, e envelope, id int64, req *Request) []byte {
	var meta []byte
	count := 0
	if len(req.Params) > 0 {
		rawjson.Members(req.Params, func(key string, value []byte) {
			if count++; key == "_meta" {
				meta = value
			}
		})
	}
	e = e.of(meta)
	if meta == nil {
		if !e.needed(req) {
			return append(dst, req.Params...)
		}
		dst = append(dst, `{"_meta":{`...)
		dst = append(e.append(dst, id, req), '}')
		if count == 0 {
			return append(dst, '}')
		}
		dst = append(dst, ',')
		return append(dst, req.Params[bytes.IndexByte(req.Params, '{')+1:]...)
	}
	dst = append(dst, '{')
	rawjson.Members(req.Params, func(key string, value []byte) {
		if key != "_meta" {
			dst = rawjson.AppendMember(dst, key, value)
		}
	})
	dst = rawjson.AppendMember(dst, "_meta", append(e.metaWith(meta, id, req), '}'))
	return append(dst, '}')
}

// metaWith returns the _meta of a request that already has one, with our members added and without
// the closing brace.
func (e envelope) metaWith(meta []byte, id int64, req *Request) []byte {
	inner := []byte{'{'}
	if e.needed(req) {
		inner = e.append(inner, id, req)
	}
	rawjson.Members(meta, func(key string, value []byte) {
		if !ownMeta(key, req) {
			inner = rawjson.AppendMember(inner, key, value)
		}
	})
	return inner
}

// needed reports whether the request needs members in _meta.
func (e envelope) needed(req *Request) bool {
	return e.fixed != "" || req.Progress != nil || req.Trace.Parent != "" || req.Trace.State != "" || req.bound != nil || e.tellsOf(req)
}

// tellsOf reports whether a request without a binding has a session, clock or seed to send.
func (e envelope) tellsOf(req *Request) bool {
	return e.tells && req.bound == nil && req.Session != ""
}

// append appends the members of _meta for one request. There is at least one.
func (e envelope) append(dst []byte, id int64, req *Request) []byte {
	from := len(dst)
	dst = append(dst, e.fixed...)
	comma := func() {
		if len(dst) > from {
			dst = append(dst, ',')
		}
	}
	if req.Progress != nil {
		comma()
		dst = append(dst, `"progressToken":`...)
		dst = strconv.AppendInt(dst, id, 10)
	}
	if req.Trace.Parent != "" {
		comma()
		dst = append(dst, `"traceparent":`...)
		dst = rawjson.AppendText(dst, req.Trace.Parent)
	}
	if req.Trace.State != "" {
		comma()
		dst = append(dst, `"tracestate":`...)
		dst = rawjson.AppendText(dst, req.Trace.State)
	}
	switch {
	case req.bound != nil:
		comma()
		dst = appendTold(dst, req.bound.name, req)
	case e.tellsOf(req):
		comma()
		dst = appendTold(dst, req.Session, req)
	}
	return dst
}

// cancelMessage returns the notification that asks the server to stop working on a request.
func cancelMessage(id int64, reason string) []byte {
	dst := []byte(`{"jsonrpc":"2.0","method":"` + mcpwire.NotifyCancelled + `","params":{"requestId":`)
	dst = strconv.AppendInt(dst, id, 10)
	dst = append(dst, `,"reason":`...)
	dst = rawjson.AppendText(dst, reason)
	return append(dst, `}}`...)
}

// appendReply appends the response to a request of the server. Pings are answered. All other
// requests are refused, because no caller listens on the session.
func appendReply(dst []byte, f *frame) []byte {
	dst = append(dst, `{"jsonrpc":"2.0","id":`...)
	dst = append(dst, f.id...)
	if string(f.method) == `"`+mcpwire.MethodPing+`"` {
		return append(dst, `,"result":{}}`...)
	}
	return append(mcpwire.AppendError(append(dst, ','), mcpwire.CodeMethodNotFound, "this request cannot be answered: the caller did not declare the capability, or cannot be asked during this call"), '}')
}

// flatten replaces raw line breaks with spaces. They are legal white space between JSON tokens,
// never occur inside strings, and would end a message on stdio.
func flatten(b []byte) {
	for _, c := range [2]byte{'\n', '\r'} {
		for rest := b; ; {
			i := bytes.IndexByte(rest, c)
			if i < 0 {
				break
			}
			rest[i] = ' '
			rest = rest[i+1:]
		}
	}
}
