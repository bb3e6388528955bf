package mcp

import (
	"bytes"

	"github.com/callyard/callyard/internal/kit/mcpwire"
	"github.com/callyard/callyard/internal/kit/rawjson"
)

// mayHold reports whether the text could contain a quoted name.
func mayHold(text []byte, quoted string) bool { return bytes.Contains(text, []byte(quoted)) }

// fitted returns a server's result as the client may see it, byte for byte where nothing must
// change. The server's own description (serverInfo in _meta) is kept at the server's mount and
// replaced by this endpoint's at /mcp. Clients of the legacy era receive neither that nor the
// other members that only the modern era has.
func (x *exchange) fitted(body []byte) []byte {
	body = withoutOwn(body)
	if mayHold(body, mcpwire.MetaServerInfo) && (!ofServer(x.mount) || !x.modern) {
		var info []byte
		if x.modern {
			info = x.ep.discovery.info(x)
		}
		body = withInfo(body, info)
	}
	if !x.modern && mayHold(body, `"resultType"`) && get(body, "resultType") != nil {
		body = rawjson.Without(body, "resultType", "ttlMs", "cacheScope")
	}
	if !x.modern && mayHold(body, `"structuredContent"`) {
		body = legacyStructured(body)
	}
	return body
}

// Members of _meta with which this endpoint answers by itself.
const (
	metaError        = "callyard/error"
	metaConfirmation = "callyard/confirmation"
)

// withoutOwn removes the members of _meta that a client takes for answers of this endpoint. A server must
// not name the page where people approve calls, nor say that a call did not run.
func withoutOwn(body []byte) []byte {
	if !mayHold(body, "callyard") && !mayHold(body, `\u00`) { // a letter can also be written as an escape
		return body
	}
	var out []byte
	done := 0 // the bytes of body before it are in out
	members(body, func(key string, from, to int) {
		if key != "_meta" || !isObject(body[from:to]) {
			return
		}
		inner, found := []byte{'{'}, false
		each(body[from:to], func(key string, value []byte) {
			if key == metaError || key == metaConfirmation {
				found = true
				return
			}
			inner = appendMember(inner, key, value)
		})
		if found {
			out = append(append(append(out, body[done:from]...), inner...), '}')
			done = to
		}
	})
	if done == 0 {
		return body
	}
	return append(out, body[done:]...)
}

// legacyStructured returns a result without structured content that is not an object, which only the
// modern era has. The SDKs of the legacy era reject the whole result for it. A server should repeat
// the value as text; if this one did not, it is added.
func legacyStructured(body []byte) []byte {
	value := get(body, "structuredContent")
	if value == nil || isObject(value) {
		return body
	}
	body = rawjson.Without(body, "structuredContent")
	empty := true
	rawjson.Elements(get(body, "content"), func(int, int) { empty = false })
	if empty {
		content := append(appendQuoted([]byte(`[{"type":"text","text":`), string(value)), `}]`...)
		body = rawjson.With(body, "content", content)
	}
	return body
}

// withInfo replaces serverInfo in the _meta of a result, or removes it if info is nil.
func withInfo(body, info []byte) []byte {
	from, to := -1, -1
	members(body, func(key string, a, b int) {
		if key == "_meta" {
			from, to = a, b
		}
	})
	if from < 0 || !isObject(body[from:to]) {
		return body
	}
	inner, found := []byte{'{'}, false
	each(body[from:to], func(key string, value []byte) {
		if key == mcpwire.MetaServerInfo {
			if found = true; info == nil {
				return
			}
			value = info
		}
		inner = appendMember(inner, key, value)
	})
	if !found {
		return body
	}
	out := append(make([]byte, 0, len(body)+len(info)), body[:from]...)
	out = append(append(out, inner...), '}')
	return append(out, body[to:]...)
}
