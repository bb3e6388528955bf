package rest

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/callyard/callyard/internal/calls"
	"github.com/callyard/callyard/pkg/schema"
)

// bodyRoom is what the body of POST /calls may take beside the arguments.
const bodyRoom = 4 << 10

// Bounds of the trace context that travels with a call.
const (
	traceParentLength = 55
	traceStateMost    = 512
)

func (a *API) registerCalls() {
	a.raw(a.opCallTool(), "/servers/{id}/tools/{tool}", a.callTool)
	a.raw(a.opCall(), "/calls", a.call)
}

// callTool is POST /servers/{id}/tools/{tool}: the hot path. The body is the
// arguments, the answer is the result, both as they are.
func (a *API) callTool(x *exchange, r *http.Request) error {
	call := &schema.Call{ID: schema.NewCallID(), Server: r.PathValue("id"), Tool: r.PathValue("tool"), Principal: x.principal}
	a.trace(x, r, call)
	freshness(r, call)
	arguments, err := a.readBody(x, r, a.limits.ArgumentBytes)
	if err != nil {
		return schema.AsError(err).WithCall(call.ID)
	}
	if call.Arguments = arguments; len(arguments) == 0 {
		call.Arguments = []byte("{}")
	}
	if call.Timeout, err = a.requestTimeout(x, r); err != nil {
		return schema.AsError(err).WithCall(call.ID)
	}
	w, err := a.wishOf(r, arguments)
	if err != nil {
		return schema.AsError(err).WithCall(call.ID)
	}
	return a.run(x, r, call, w)
}

// call is POST /calls: the same call with everything in the body.
func (a *API) call(x *exchange, r *http.Request) error {
	call := &schema.Call{ID: schema.NewCallID(), Principal: x.principal}
	x.tellOutcome = true
	a.trace(x, r, call)
	freshness(r, call)
	limit := a.limits.ArgumentBytes + bodyRoom
	body, err := a.readBody(x, r, limit)
	if err != nil {
		return schema.AsError(err).WithCall(call.ID)
	}
	w, err := a.wishOf(r, body)
	if err == nil {
		err = a.readCall(x, r, body, call, &w)
	}
	if err != nil {
		return schema.AsError(err).WithCall(call.ID)
	}
	return a.run(x, r, call, w)
}

func (a *API) readCall(x *exchange, r *http.Request, body []byte, call *schema.Call, w *wish) error {
	limit := a.limits.ArgumentBytes + bodyRoom
	members, err := object(body, limit, a.limits.ArgumentDepth+1, "server", "tool", "arguments", "timeout_ms", "callback_url")
	if err != nil {
		return err
	}
	if err := member(members, "callback_url", false, "a string, an address", &w.callback); err != nil {
		return err
	}
	return a.readMembers(x, r, members, call)
}

// readMembers reads what names a call. Lines of a batch have no request.
func (a *API) readMembers(x *exchange, r *http.Request, members map[string]json.RawMessage, call *schema.Call) (err error) {
	if err := member(members, "server", true, "a string, the id of a server", &call.Server); err != nil {
		return err
	}
	if err := member(members, "tool", true, "a string, the name of a tool", &call.Tool); err != nil {
		return err
	}
	call.Arguments = []byte("{}")
	if raw, ok := members["arguments"]; ok {
		call.Arguments = raw // the bytes that came; the gate says what is wrong with them
	}
	if r != nil {
		if call.Timeout, err = a.requestTimeout(x, r); err != nil {
			return err
		}
	}
	var ms json.Number
	if err := member(members, "timeout_ms", false, "a number of milliseconds", &ms); err != nil {
		return err
	}
	if raw := members["timeout_ms"]; len(raw) > 0 && raw[0] == '"' {
		return schema.Errorf(schema.KindInvalidRequest, "The member timeout_ms must be a number, not a string.")
	}
	timeout, err := a.timeout(ms.String(), "timeout_ms")
	if timeout > 0 {
		call.Timeout = timeout
	}
	return err
}

// requestTimeout reads the time a caller gives a call in the query or, when it is
// not there, in the header.
func (a *API) requestTimeout(x *exchange, r *http.Request) (time.Duration, error) {
	if x.query.Has("timeout_ms") {
		return a.timeout(x.query.Get("timeout_ms"), "timeout_ms")
	}
	if header := r.Header["Callyard-Timeout-Ms"]; len(header) > 0 {
		return a.timeout(header[0], "The header Callyard-Timeout-Ms")
	}
	return 0, nil
}

// trace puts the call below the span of the request. Where there are no traces it
// takes the W3C trace context of the request along, if it is sound, and echoes it.
func (a *API) trace(x *exchange, r *http.Request, call *schema.Call) {
	if x.span != nil {
		call.Trace = x.span.Trace()
		return
	}
	if call.Trace = traceOf(r); call.Trace.Parent != "" {
		x.set("Traceparent", call.Trace.Parent)
	}
}

// traceOf is the W3C trace context of a request, empty for one that is not sound.
func traceOf(r *http.Request) (t schema.Trace) {
	parent := r.Header["Traceparent"]
	if len(parent) != 1 || !soundTraceParent(parent[0]) {
		return t
	}
	t.Parent = parent[0]
	if state := r.Header["Tracestate"]; len(state) > 0 {
		if joined := strings.Join(state, ","); len(joined) <= traceStateMost {
			t.State = joined
		}
	}
	return t
}

// soundTraceParent says that the text is version-traceid-parentid-flags in lower
// hex, with neither id all zero.
func soundTraceParent(text string) bool {
	if len(text) != traceParentLength || text[2] != '-' || text[35] != '-' || text[52] != '-' || text[:2] == "ff" {
		return false
	}
	trace, span := false, false
	for i := 0; i < len(text); i++ {
		c := text[i]
		if i == 2 || i == 35 || i == 52 {
			continue
		}
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
		trace = trace || i > 2 && i < 35 && c != '0'
		span = span || i > 35 && i < 52 && c != '0'
	}
	return trace && span
}

// run submits the call and answers with what came of it, as a stream of events where the
// caller asked for one and does not want the call stored.
func (a *API) run(x *exchange, r *http.Request, call *schema.Call, w wish) error {
	req := calls.Request{Call: call, Durable: w.preference.durable(), Key: w.key, Fingerprint: w.fingerprint, CallbackURL: w.callback, Async: w.atOnce()}
	ctx := r.Context()
	if x.span != nil {
		x.note(call)
		ctx = x.span.Carry(ctx)
	}
	if !w.durable() && wantsEvents(r.Header["Accept"]) {
		return a.stream(ctx, x, req)
	}
	out, err := a.o.Calls.Submit(ctx, req)
	if x.span != nil {
		x.outcome(&out, err)
	}
	switch {
	case err != nil:
		return err
	case out.Held != nil:
		a.held(x, out.Held)
		return nil
	case out.Accepted != nil:
		return a.acceptedOr(ctx, x, r, out.Accepted, w)
	}
	x.set("Callyard-Call-Id", call.ID)
	a.answer(x, out.Result)
	return nil
}

// answer answers with the result of a call.
func (a *API) answer(x *exchange, res *schema.Result) {
	if res.Worker != "" {
		x.set("Callyard-Worker", res.Worker)
	}
	x.cached(&res.Cache)
	a.sendResult(x, res.Body)
}

// wantsEvents says that the caller prefers a stream of events to JSON: it names
// text/event-stream, and JSON not before it.
func wantsEvents(accept []string) bool {
	if len(accept) == 0 {
		return false
	}
	if len(accept) == 1 && (accept[0] == "*/*" || accept[0] == "application/json") {
		return false
	}
	for media := range strings.SplitSeq(strings.ToLower(strings.Join(accept, ",")), ",") {
		media, parameters, _ := strings.Cut(media, ";")
		if slices.Contains(strings.Fields(strings.ReplaceAll(parameters, ";", " ")), "q=0") {
			continue
		}
		switch strings.TrimSpace(media) {
		case "text/event-stream":
			return true
		case "application/json":
			return false
		}
	}
	return false
}
