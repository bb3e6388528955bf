package session

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/callyard/callyard/internal/kit/mcpwire"
	"github.com/callyard/callyard/internal/kit/rawjson"
	"github.com/callyard/callyard/pkg/schema"
)

// receive processes one message from a stream. Only the reading goroutine calls it.
func (s *session) receive(text []byte) {
	var f frame
	if !s.scan.frame(text, &f) {
		s.broken(&f, text)
		return
	}
	switch {
	case f.method != nil:
		s.incoming(&f)
	case len(f.id) == 0 || string(f.id) == "null" || f.result == nil && f.fault == nil:
		s.noise()
		return
	default:
		if string(f.fault) == "null" {
			f.fault = nil
		}
		if id := ownRequestID(f.id); id == 0 {
			if !s.sdk.deliver(f.id, text) {
				s.noise()
				return
			}
			s.hear()
		} else if r := s.take(id); r != nil {
			s.answered(r)
			r.end(s.asked(r.req, s.outcome(&f, false)))
		}
	}
	s.unexpected = 0
}

// hear records a sign of life: an answer, or progress on a call.
func (s *session) hear() { s.heard.Store(int64(time.Since(s.born))) }

// silence returns the time since the last sign of life.
func (s *session) silence() time.Duration { return time.Since(s.born) - time.Duration(s.heard.Load()) }

// answered records that a request got its answer.
func (s *session) answered(r *Running) {
	s.hear()
	s.late.Store(0)
	if r.pool != nil {
		s.served.Store(true)
	}
}

// broken handles text that is not a JSON object. If it is an object with a fault and names one of our
// calls, that call ends without waiting for its timeout. A line of a log that ends with a message
// does not count: the message itself may follow.
func (s *session) broken(f *frame, text []byte) {
	if bytes.HasPrefix(bytes.TrimLeft(text, " \t"), []byte("{")) && f.id == nil {
		f.id = lastID(text)
	}
	if id := ownRequestID(f.id); id != 0 && f.method == nil {
		if r := s.take(id); r != nil {
			e := schema.Errorf(schema.KindProtocol, "The server %q returned an answer that is not valid JSON.", s.pool.cfg.Spec.ID)
			if rawjson.ExceedsDepth(text, rawjson.MaxNesting) {
				e = schema.Errorf(schema.KindResultTooLarge, "The tool ran, but the answer of server %q nests deeper than the limit of %d levels; request less data from the tool.", s.pool.cfg.Spec.ID, rawjson.MaxNesting)
			}
			r.end(Outcome{Started: true, Err: e})
		}
	}
	s.noise()
}

// lastID returns the id at the end of a message, where many servers write it, or nil.
func lastID(text []byte) []byte {
	i := bytes.LastIndex(text, []byte(`"id":`))
	if i < 0 {
		return nil
	}
	return bytes.TrimRight(text[i+len(`"id":`):], " \t}")
}

// tooLong handles a message that exceeds the limit, of which only the first and the last bytes are known.
// It reports whether the message is an answer that names its call. That call ends; the others continue.
func (s *session) tooLong(head, tail []byte) bool {
	var f frame
	s.scan.members(head, &f) // up to the member that is not complete
	if f.method != nil {
		return false
	}
	if f.id == nil || bytes.HasSuffix(head, f.id) {
		f.id = lastID(bytes.TrimRight(tail, "\r"))
	}
	id := ownRequestID(f.id)
	if id == 0 {
		return false
	}
	if r := s.take(id); r != nil {
		s.answered(r)
		r.end(tooLarge(&s.pool.cfg))
	}
	s.unexpected = 0
	return true
}

// noise counts a message that violates the protocol. A few are common, such as a greeting that a
// server prints. Many mean that the server is broken.
func (s *session) noise() {
	s.pool.noise.Add(1)
	if s.unexpected++; s.unexpected == maxUnexpected {
		s.fail(errors.New("it wrote 1000 lines in a row that are not MCP messages"))
	}
}

// incoming handles messages that the server sends unprompted. It processes only those that
// matter. The rest never reaches a queue that the server could fill.
func (s *session) incoming(f *frame) {
	method := f.method
	if bytes.IndexByte(method, '\\') >= 0 {
		var name string
		if json.Unmarshal(method, &name) != nil {
			return
		}
		method = rawjson.AppendText(nil, name)
		f.method = method
	}
	if s.asks != nil && s.asks.pass(f) || s.logs.pass(f, 0) {
		return
	}
	if len(f.id) > 0 && string(f.id) != "null" {
		s.reply(appendReply(nil, f))
		return
	}
	switch string(method) {
	case `"` + mcpwire.NotifyProgress + `"`:
		s.progress(f.params)
	case `"` + mcpwire.NotifyToolsChanged + `"`, `"` + mcpwire.NotifyResourcesChanged + `"`, `"` + mcpwire.NotifyPromptsChanged + `"`:
		s.listChanged()
	case `"` + mcpwire.NotifyDraining + `"`:
		if l, ok := s.link.(*socketLink); ok {
			l.drain()
		}
	case `"` + mcpwire.NotifyResourceUpdated + `"`:
		s.pool.subscriptions.updated(member(f.params, "uri"))
	}
}

// reply sends the reply to a request of the server. It does not wait for the server.
func (s *session) reply(body []byte) {
	if l, ok := s.link.(interface{ reply(body []byte) }); ok {
		l.reply(body)
		return
	}
	s.link.post(body)
}

// progress passes a progress notification to the call that asked for it.
func (s *session) progress(params []byte) {
	var token []byte
	rawjson.Members(params, func(key string, value []byte) {
		if key == "progressToken" {
			token = value
		}
	})
	id := ownRequestID(token)
	if id == 0 {
		return
	}
	s.mu.Lock()
	r := s.calls[id]
	s.mu.Unlock()
	if r != nil && r.req.Progress != nil && !r.ended.Load() {
		s.hear()
		r.req.Progress(bytes.Clone(params))
	}
}

// listChanged schedules a read of the definitions.
func (s *session) listChanged() {
	s.pins.changes.Add(1)
	s.changes.Store(true)
	s.pool.offers.changed()
}

// outcome returns the outcome of the call from its answer. keep means that the bytes of the frame
// are not reused; otherwise the result is copied.
func (s *session) outcome(f *frame, keep bool) Outcome {
	cfg := &s.pool.cfg
	if f.fault != nil {
		return Outcome{Started: true, Err: rpcFault(cfg.Spec.ID, f.fault)}
	}
	fail := func(kind schema.Kind, format string, args ...any) Outcome {
		return Outcome{Started: true, Err: schema.Errorf(kind, format, args...)}
	}
	switch {
	case len(f.result) > cfg.MaxResult:
		return tooLarge(cfg)
	case len(f.result) == 0 || f.result[0] != '{':
		return fail(schema.KindProtocol, "The server %q answered with a result that is not an object; it does not follow the protocol.", cfg.Spec.ID)
	}
	switch kind := string(f.resultType); kind {
	case "", `"complete"`:
	case `"input_required"`:
		o := Outcome{Body: f.result, Input: true, Started: true}
		if !keep {
			o.Body, o.Alone = bytes.Clone(f.result), true
		}
		return o
	case `"task"`:
		return fail(schema.KindProtocol, "The server %q answered with a task although tasks were not offered; it does not follow the protocol.", cfg.Spec.ID)
	default:
		if s.env.fixed != "" {
			return fail(schema.KindProtocol, "The server %q answered with a resultType that this revision of the protocol does not have.", cfg.Spec.ID)
		}
	}
	o := Outcome{Body: f.result, ToolError: f.toolError, Started: true}
	if !keep {
		o.Body, o.Alone = bytes.Clone(f.result), true
	}
	return o
}

func tooLarge(cfg *Config) Outcome {
	return Outcome{Started: true, Err: schema.Errorf(schema.KindResultTooLarge,
		"The server %q returned a result that exceeds the limit of %d bytes; request less data, or raise the limit.", cfg.Spec.ID, cfg.MaxResult)}
}

// rpcFault converts a JSON-RPC error into ours. The error text does not include the server's
// message, because servers often repeat arguments in it.
func rpcFault(server schema.ServerID, raw []byte) *schema.Error {
	rpc := &schema.RPCError{}
	if json.Unmarshal(raw, rpc) != nil {
		_ = json.Unmarshal(raw, &rpc.Message) // some servers send a text instead of an error object
	}
	e := schema.Errorf(schema.KindProtocol, "The server %q refused the request with the JSON-RPC error %d.", server, rpc.Code)
	if rpc.Code == 0 {
		e.Detail = fmt.Sprintf("The server %q refused the request with an error that has no code; it does not follow the protocol.", server)
	}
	e.RPC = rpc
	return e
}
