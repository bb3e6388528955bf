package mcp

import (
	"bytes"
	"strings"

	"github.com/callyard/callyard/internal/kit/mcpwire"
	"github.com/callyard/callyard/internal/kit/rawjson"
	"github.com/callyard/callyard/internal/validate"
	"github.com/callyard/callyard/pkg/schema"
)

// envelopeDepth is the nesting depth that a message adds to that of its arguments.
const envelopeDepth = 3

// message is one received JSON-RPC message. The slices point into its text and are nil if the
// member is absent.
type message struct {
	id, params, result, fault []byte
	method                    string
	members                   paramMembers
}

// paramMembers caches the first members of the params, found while the message was read, so that
// a lookup does not scan the params again. A tool call has no others. If more is set, there are
// others.
type paramMembers struct {
	few  [5]paramMember
	n    int
	more bool
}

type paramMember struct {
	name  string
	value []byte
}

func (p *paramMembers) add(name string, value []byte) {
	if p.n == len(p.few) {
		p.more = true
		return
	}
	p.few[p.n] = paramMember{name, value}
	p.n++
}

// param returns a member of the params, or nil if it is absent. [readMessage] checked that names
// are unique.
func (m *message) param(name string) []byte {
	for i := range m.members.n {
		if m.members.few[i].name == name {
			return m.members.few[i].value
		}
	}
	if m.members.more {
		return get(m.params, name)
	}
	return nil
}

// textParam returns a string member of the params, or "" if it is absent or not a string.
func (m *message) textParam(name string) string {
	s, _ := str(m.param(name))
	return s
}

// request reports whether the message requires an answer.
func (m *message) request() bool { return m.method != "" && m.id != nil }

// readMessage parses one message of at most limit bytes. It validates the whole text, so that no
// later step has to.
func readMessage(text []byte, limit, depth int) (m message, f *fault) {
	if err := validate.Value(text, limit, depth+envelopeDepth); err != nil {
		if schema.KindOf(err) == schema.KindTooLarge {
			return m, &fault{Code: mcpwire.CodeInvalidRequest, Message: schema.AsError(err).Detail, status: 413}
		}
		return m, &fault{Code: mcpwire.CodeParse, Message: schema.AsError(err).Detail}
	}
	if trimmed := bytes.TrimLeft(text, " \t\r\n"); trimmed[0] == '[' {
		return m, invalid(noBatches) // a nested batch
	}
	version := ""
	var s rawjson.Scanner
	s.Reset(text)
	ok := s.Object(func(key string) bool {
		from := s.At()
		var sound bool
		if key == "params" && s.Peek() == '{' {
			sound = s.Members(func(name string, from, to int) { m.members.add(name, text[from:to]) })
		} else {
			sound = s.Value()
		}
		if !sound {
			return false
		}
		value := text[from:s.At()]
		switch key {
		case "jsonrpc":
			version, _ = str(value)
		case "id":
			m.id = value
		case "method":
			m.method, _ = str(value)
		case "params":
			m.params = value
		case "result":
			m.result = value
		case "error":
			if string(value) != "null" { // some clients write both members, and null for the one that is absent
				m.fault = value
			}
		}
		return true
	}) && s.End()
	switch {
	case !ok || version != "2.0":
		return m, invalid("The body is not a JSON-RPC 2.0 message.")
	case m.id != nil && !validID(m.id):
		m.id = nil
		return m, invalid("The request id must be a string or an integer.")
	case m.params != nil && !isObject(m.params):
		return m, &fault{Code: mcpwire.CodeInvalidParams, Message: "The params of a request must be an object.", status: 400}
	case m.method == "" && (m.id == nil || m.result == nil && m.fault == nil):
		return m, invalid("The message is not a request, a notification or a response.")
	}
	return m, nil
}

// maxIDBytes limits the length of an ID, because it is sent back.
const maxIDBytes = 1 << 10

func validID(id []byte) bool {
	if len(id) > maxIDBytes {
		return false
	}
	switch {
	case id[0] == '"':
		return true
	case id[0] == '-' || id[0] >= '0' && id[0] <= '9':
		return !bytes.ContainsAny(id, ".eE")
	}
	return false
}

// meta is the _meta of a request.
type meta struct {
	raw          []byte
	version      string // of the modern era; "" if absent
	capabilities []byte // an object, or nil
	token        []byte // progress token, verbatim; nil if absent
	level        string // minimum level of log messages for the client; "" if it wants none
	trace        schema.Trace
	baggage      bool // the caller's baggage may be forwarded
}

// unknownLevel represents a log level that the protocol does not define.
const unknownLevel = "?"

// Limits of the trace context that is forwarded with a call.
const (
	traceParentLength = 55
	maxTraceState     = 512
	maxTokenBytes     = 1 << 10
)

// readMeta reads the _meta of a request. baggage reports whether the caller's baggage may be
// forwarded.
func readMeta(raw []byte, baggage bool) (m meta) {
	m.baggage = baggage
	if m.raw = raw; !isObject(m.raw) {
		m.raw = nil
		return m
	}
	each(m.raw, func(key string, value []byte) {
		switch key {
		case mcpwire.MetaProtocolVersion:
			m.version, _ = str(value)
		case mcpwire.MetaClientCapabilities:
			if isObject(value) {
				m.capabilities = value
			}
		case mcpwire.MetaLogLevel:
			if m.level, _ = str(value); !schema.IsLogLevel(m.level) {
				m.level = unknownLevel
			}
		case "progressToken":
			if len(value) <= maxTokenBytes && validID(value) {
				m.token = value
			}
		case "traceparent":
			if s, ok := str(value); ok && len(s) == traceParentLength {
				m.trace.Parent = s
			}
		case "tracestate":
			if s, ok := str(value); ok && len(s) <= maxTraceState {
				m.trace.State = s
			}
		}
	})
	if m.trace.Parent == "" {
		m.trace.State = ""
	}
	return m
}

// capable reports whether an object of capabilities contains the nested members of path.
func capable(capabilities []byte, path ...string) bool {
	for _, name := range path {
		if capabilities = get(capabilities, name); len(capabilities) == 0 || string(capabilities) == "null" {
			return false
		}
	}
	return len(capabilities) > 0
}

// forwarded returns the members of a caller's _meta that are sent to the server: those not bound
// to the connection, its capabilities if it can be asked for input, and the level of the log
// messages that it wants ("" if none).
func (m *meta) forwarded(capabilities []byte, level string) []byte {
	inner := []byte{'{'}
	if len(m.raw) > 0 {
		each(m.raw, func(key string, value []byte) {
			switch key {
			case "progressToken", "traceparent", "tracestate":
				return
			case "baggage":
				if !m.baggage {
					return
				}
			}
			if !strings.HasPrefix(key, mcpwire.MetaPrefix) {
				inner = appendMember(inner, key, value)
			}
		})
	}
	if asks := askable(capabilities); asks != nil {
		inner = appendMember(inner, mcpwire.MetaClientCapabilities, asks)
	}
	if level != "" {
		inner = appendMember(inner, mcpwire.MetaLogLevel, quote(level))
	}
	if len(inner) == 1 {
		return nil
	}
	return append(inner, '}')
}

// askable returns the capabilities that let a server ask its caller for input, or nil if there
// are none. Callyard cannot forward the caller's other capabilities.
func askable(capabilities []byte) []byte {
	if len(capabilities) == 0 {
		return nil
	}
	inner := []byte{'{'}
	each(capabilities, func(key string, value []byte) {
		switch key {
		case "elicitation", "sampling", "roots":
			if isObject(value) {
				inner = appendMember(inner, key, value)
			}
		}
	})
	if len(inner) == 1 {
		return nil
	}
	return append(inner, '}')
}
