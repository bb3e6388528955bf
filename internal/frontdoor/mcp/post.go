package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/callyard/callyard/internal/authn/scope"
	"github.com/callyard/callyard/internal/bodies"
	"github.com/callyard/callyard/internal/kit/mcpwire"
	"github.com/callyard/callyard/internal/kit/truncate"
	"github.com/callyard/callyard/internal/problem"
	"github.com/callyard/callyard/pkg/schema"
)

// envelopeBytes is the maximum size of a message in addition to its arguments.
const envelopeBytes = 256 << 10

// post serves one message.
func (ep *Endpoint) post(x *exchange, r *http.Request) {
	if mediaType(r.Header.Get("Content-Type")) != "application/json" {
		x.refuse(http.StatusUnsupportedMediaType, schema.Errorf(schema.KindInvalidRequest, "The body must be JSON: send Content-Type: application/json."))
		return
	}
	limit := ep.limits.ArgumentBytes + envelopeBytes
	body, e := x.readBody(r, limit)
	if e != nil {
		x.fail(e)
		return
	}
	if isBatch(body) {
		ep.postBatch(x, r, body)
		return
	}
	var bad *fault
	if x.msg, bad = readMessage(body, limit, ep.limits.ArgumentDepth); bad != nil {
		x.modern = mcpwire.IsModern(r.Header.Get(mcpwire.HeaderProtocolVersion))
		x.fail(bad)
		return
	}
	x.meta = readMeta(x.msg.param("_meta"), ep.o.Baggage)
	header := r.Header.Get(mcpwire.HeaderProtocolVersion)
	x.modern = mcpwire.IsModern(header) || x.meta.version != "" && x.msg.method != mcpwire.MethodInitialize
	if ep.o.Traces != nil {
		ep.beginSpan(x, r)
	}
	if bad := x.allow(scope.OfMethod(x.msg.method).Scopes...); bad != nil && x.msg.request() {
		x.fail(bad)
		return
	}
	if x.modern {
		ep.serveModern(x, r)
		return
	}
	ep.serveLegacy(x, r)
}

// Memory budgets of all messages that are being read or processed: for messages of up to 64 KiB,
// and for the rest of larger ones.
const (
	smallBodies = 16 << 20
	largeBodies = 32 << 20
)

// readBody reads the whole body.
func (x *exchange) readBody(r *http.Request, limit int) ([]byte, *fault) {
	w := x.res.w
	body, _, err := x.ep.bodies.ReadRequest(&x.reservation, w, r, limit)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		w.Header().Set("Connection", "close")
		return nil, &fault{Code: mcpwire.CodeInvalidRequest, Message: "The request body did not arrive in time.", status: http.StatusRequestTimeout}
	case errors.Is(err, bodies.ErrTooLong):
		return nil, &fault{Code: mcpwire.CodeInvalidRequest, Message: schema.Errorf(schema.KindTooLarge, "The body exceeds the limit of %d bytes; send less, or ask the operator to raise the limit.", limit).Detail, status: http.StatusRequestEntityTooLarge}
	case errors.Is(err, bodies.ErrFull):
		w.Header().Set("Connection", "close")
		w.Header().Set("Retry-After", "1")
		return nil, &fault{Code: mcpwire.CodeInternal, Message: "The front door reached its memory limit for large messages; the request was not processed. Send it again in a moment.", status: http.StatusServiceUnavailable}
	case err != nil:
		w.Header().Set("Connection", "close")
		return nil, invalid("The body could not be read completely.")
	}
	return body, nil
}

// serveModern serves one message of the modern era, which is independent of all others.
func (ep *Endpoint) serveModern(x *exchange, r *http.Request) {
	if e := checkModern(&x.msg, &x.meta, r.Header); e != nil {
		x.fail(e)
		return
	}
	if !x.msg.request() {
		x.res.noContent(http.StatusAccepted) // no notification has an effect
		return
	}
	switch x.msg.method {
	case mcpwire.MethodInitialize, mcpwire.MethodPing, mcpwire.MethodSetLevel, mcpwire.MethodSubscribe, mcpwire.MethodUnsubscribe:
		x.fail(noMethod(x.msg.method)) // methods of the other era
		return
	}
	ep.answer(r.Context(), x)
}

func noMethod(name string) *fault {
	return &fault{Code: mcpwire.CodeMethodNotFound, Message: "Method not found: " + truncate.Head(name, 128)}
}

// checkModern checks the headers against the body, as the modern era requires.
func checkModern(msg *message, meta *meta, h http.Header) *fault {
	version := meta.version
	header := h.Get(mcpwire.HeaderProtocolVersion)
	mismatch := func(text string) *fault { return &fault{Code: mcpwire.CodeHeaderMismatch, Message: text} }
	if msg.request() {
		switch {
		case version == "" && header != mcpwire.Modern: // a client without _meta usually has a session
			return unsupportedVersion(header, h)
		case version == "":
			return invalidParams("The _meta of the request has no " + mcpwire.MetaProtocolVersion + ".")
		case header == "":
			return mismatch("The header MCP-Protocol-Version is missing.")
		case header != version:
			return mismatch("The header MCP-Protocol-Version differs from the version in _meta.")
		}
	} else if version == "" {
		version = header
	}
	if version != mcpwire.Modern {
		return unsupportedVersion(version, h)
	}
	if !msg.request() {
		return nil
	}
	if meta.capabilities == nil {
		return invalidParams("The _meta of the request has no " + mcpwire.MetaClientCapabilities + ", an object.")
	}
	if meta.level == unknownLevel {
		return noLevel()
	}
	switch method := h.Get(mcpwire.HeaderMethod); {
	case method == "":
		return mismatch("The header Mcp-Method is missing.")
	case method != msg.method:
		return mismatch("The header Mcp-Method differs from the method of the request.")
	}
	member := ""
	switch msg.method {
	case schema.MethodCallTool, schema.MethodGetPrompt:
		member = "name"
	case schema.MethodReadResource:
		member = "uri"
	case mcpwire.MethodGetTask, mcpwire.MethodUpdateTask, mcpwire.MethodCancelTask:
		member = "taskId"
	default:
		return nil
	}
	name, ok := mcpwire.DecodeHeader(h.Get(mcpwire.HeaderName))
	switch {
	case !ok:
		return mismatch("The header Mcp-Name cannot be decoded.")
	case name == "":
		return mismatch("The header Mcp-Name is missing.")
	case name != msg.textParam(member):
		return mismatch("The header Mcp-Name differs from the " + member + " of the request.")
	}
	return nil
}

// unsupportedVersion refuses a protocol version and lists the supported ones. For a client with a
// session, these are the versions that have sessions.
func unsupportedVersion(version string, h http.Header) *fault {
	version = problem.Printable(version, maxPrinted)
	supported := []string{mcpwire.Modern}
	if h.Get(mcpwire.HeaderSessionID) != "" || !mcpwire.IsModern(version) {
		supported = mcpwire.Legacy()
	}
	data, _ := json.Marshal(map[string]any{"supported": supported, "requested": version}) // strings only
	text := fmt.Sprintf("The protocol version %q is not supported here; supported: %s.", version, strings.Join(supported, ", "))
	if slices.Contains(supported, version) { // it is supported, but not like this
		text = fmt.Sprintf("The protocol version %q needs a session: begin with initialize, and send no protocol version in _meta.", version)
	}
	return &fault{Code: mcpwire.CodeUnsupportedVersion, status: http.StatusBadRequest, Data: data, Message: text}
}

// maxPrinted limits the length of a client's name that is repeated in an error.
const maxPrinted = 64

// answer runs the request and answers it, for both eras.
func (ep *Endpoint) answer(ctx context.Context, x *exchange) {
	if err := ep.lists.known(ep.lists.place(x)); err != nil {
		e := x.faultOf(err)
		if e.status = http.StatusNotFound; schema.KindOf(err) == schema.KindUnavailable {
			e.status = http.StatusServiceUnavailable
		}
		x.fail(e)
		return
	}
	ctx = x.span.Carry(ctx)
	x.ctx = ctx
	x.res.keepAlive()
	var result []byte
	var e *fault
	switch x.msg.method {
	case schema.MethodCallTool:
		result, e = ep.requests.callTool(ctx, x)
	case mcpwire.MethodListTools, mcpwire.MethodListResources, mcpwire.MethodListResourceTemplates, mcpwire.MethodListPrompts:
		ep.lists.send(x)
		return
	case schema.MethodReadResource:
		result, e = ep.requests.readResource(ctx, x)
	case schema.MethodGetPrompt:
		result, e = ep.requests.getPrompt(ctx, x)
	case schema.MethodComplete:
		result, e = ep.requests.complete(ctx, x)
	case mcpwire.MethodDiscover:
		if !x.modern {
			e = noMethod(x.msg.method)
			break
		}
		result = ep.discovery.result(x)
	case mcpwire.MethodListen:
		if !x.modern {
			e = noMethod(x.msg.method)
			break
		}
		e = ep.subscriptions.listen(ctx, x)
	case mcpwire.MethodGetTask, mcpwire.MethodUpdateTask, mcpwire.MethodCancelTask:
		result, e = ep.tasks.serve(ctx, x)
	default:
		e = noMethod(x.msg.method)
	}
	switch {
	case e != nil:
		x.fail(e)
	case result != nil:
		x.reply(stamped(result, &x.msg, x.modern)...)
	}
}

// stamped returns the parts of a result with the members that its era requires in front. The
// server's bytes are unchanged.
func stamped(result []byte, msg *message, modern bool) [][]byte {
	if !modern || !isObject(result) {
		return [][]byte{result}
	}
	head := []byte{'{'}
	typed, cached := false, msg.method != schema.MethodReadResource
	if mayHold(result, `"resultType"`) || !cached && mayHold(result, `"ttlMs"`) {
		each(result, func(key string, _ []byte) {
			typed = typed || key == "resultType"
			cached = cached || key == "ttlMs"
		})
	}
	if !typed {
		head = append(head, `"resultType":"complete"`...)
	}
	if !cached {
		if len(head) > 1 {
			head = append(head, ',')
		}
		head = append(head, `"ttlMs":0,"cacheScope":"private"`...)
	}
	if len(head) == 1 {
		return [][]byte{result}
	}
	rest := result[1:]
	if next := bytes.TrimLeft(rest, " \t\r\n"); len(next) > 0 && next[0] != '}' {
		head = append(head, ',')
	}
	return [][]byte{head, rest}
}
