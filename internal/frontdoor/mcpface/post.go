package mcpface

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/callyard/callyard/internal/bodies"
	"github.com/callyard/callyard/pkg/schema"
)

// messageRoom is what a message may take beside its arguments.
const messageRoom = 256 << 10

// post takes one message.
func (f *Face) post(x *exchange, r *http.Request) {
	if mediaType(r.Header.Get("Content-Type")) != "application/json" {
		x.refuse(http.StatusUnsupportedMediaType, schema.Errorf(schema.KindInvalidRequest, "The body must be JSON: send Content-Type: application/json."))
		return
	}
	limit := f.limits.ArgumentBytes + messageRoom
	body, e := x.readBody(r, limit)
	if e != nil {
		x.fail(e)
		return
	}
	var bad *fault
	if x.msg, bad = readMessage(body, limit, f.limits.ArgumentDepth); bad != nil {
		x.modern = isModern(r.Header.Get("Mcp-Protocol-Version"))
		x.fail(bad)
		return
	}
	x.meta = readMeta(x.msg.params)
	x.meta.baggage = f.o.Baggage
	header := r.Header.Get("Mcp-Protocol-Version")
	x.modern = isModern(header) || x.meta.version != "" && x.msg.method != "initialize"
	if f.o.Traces != nil {
		f.beginSpan(x, r)
	}
	if x.modern {
		f.modern(x, r)
		return
	}
	f.legacy(x, r)
}

// What all messages that are being read or worked on may take of memory at once:
// those of up to 64 KiB, and what larger ones take beyond that.
const (
	smallBodies = 16 << 20
	largeBodies = 32 << 20
)

// readBody returns the whole body.
func (x *exchange) readBody(r *http.Request, limit int) ([]byte, *fault) {
	w := x.w
	// Mostly the body is here already, so the deadline is set only once it is due.
	rc := http.NewResponseController(w)
	due := time.AfterFunc(timeFor(limit), func() { _ = rc.SetReadDeadline(time.Unix(1, 0)) })
	body, err := x.f.bodies.Read(&x.lot, r.Body, r.ContentLength, limit)
	if !due.Stop() && err == nil {
		err = os.ErrDeadlineExceeded
	}
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		w.Header().Set("Connection", "close")
		return nil, &fault{Code: codeInvalidRequest, Message: "The body did not arrive in time.", status: http.StatusRequestTimeout}
	case errors.Is(err, bodies.ErrTooLong):
		return nil, &fault{Code: codeInvalidRequest, Message: schema.Errorf(schema.KindTooLarge, "The body is over the limit of %d bytes; send less, or ask the operator to raise the limit.", limit).Detail, status: http.StatusRequestEntityTooLarge}
	case errors.Is(err, bodies.ErrFull):
		w.Header().Set("Connection", "close")
		w.Header().Set("Retry-After", "1")
		return nil, &fault{Code: codeInternal, Message: "The front door holds as many large messages as it may; nothing was done. Send it again in a moment.", status: http.StatusServiceUnavailable}
	case err != nil:
		w.Header().Set("Connection", "close")
		return nil, invalid("The body could not be read to its end.")
	}
	return body, nil
}

// modern serves one message of the modern era: it stands alone.
func (f *Face) modern(x *exchange, r *http.Request) {
	if e := x.checkModern(r); e != nil {
		x.fail(e)
		return
	}
	if !x.msg.request() {
		x.taken(http.StatusAccepted) // there is no notification that matters
		return
	}
	switch x.msg.method {
	case "initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe":
		x.fail(noMethod(x.msg.method)) // of the other era
		return
	}
	f.answer(r.Context(), x)
}

func noMethod(name string) *fault {
	if len(name) > 128 {
		name = name[:128]
	}
	return &fault{Code: codeNoMethod, Message: "Method not found: " + name}
}

// checkModern holds the headers against the body, as the era wants it.
func (x *exchange) checkModern(r *http.Request) *fault {
	version := x.meta.version
	header := r.Header.Get("Mcp-Protocol-Version")
	mismatch := func(text string) *fault { return &fault{Code: codeHeaderMismatch, Message: text} }
	if x.msg.request() {
		switch {
		case x.meta.raw == nil || version == "":
			return &fault{Code: codeInvalidParams, Message: "The _meta of the request lacks " + metaProtocol + "."}
		case header == "":
			return mismatch("The header MCP-Protocol-Version is missing.")
		case header != version:
			return mismatch("The header MCP-Protocol-Version differs from the version in _meta.")
		}
	} else if version == "" {
		version = header
	}
	if version != modernVersion {
		data, _ := json.Marshal(map[string]any{"supported": []string{modernVersion}, "requested": printable(version)}) // strings only
		return &fault{Code: codeNoVersion, Message: "This revision of the protocol is not spoken here.", Data: data}
	}
	if !x.msg.request() {
		return nil
	}
	if x.meta.capabilities == nil {
		return &fault{Code: codeInvalidParams, Message: "The _meta of the request lacks " + metaCapabilities + ", an object."}
	}
	if x.meta.level == unknownLevel {
		return noLevel()
	}
	switch method := r.Header.Get("Mcp-Method"); {
	case method == "":
		return mismatch("The header Mcp-Method is missing.")
	case method != x.msg.method:
		return mismatch("The header Mcp-Method differs from the method of the request.")
	}
	member := ""
	switch x.msg.method {
	case schema.MethodCallTool, schema.MethodGetPrompt:
		member = "name"
	case schema.MethodReadResource:
		member = "uri"
	case "tasks/get", "tasks/update", "tasks/cancel":
		member = "taskId"
	default:
		return nil
	}
	name, ok := decodeHeader(r.Header.Get("Mcp-Name"))
	switch {
	case !ok:
		return mismatch("The header Mcp-Name cannot be decoded.")
	case name == "":
		return mismatch("The header Mcp-Name is missing.")
	case name != getString(x.msg.params, member):
		return mismatch("The header Mcp-Name differs from the " + member + " of the request.")
	}
	return nil
}

// decodeHeader returns what a header says, in plain text or in base64.
func decodeHeader(value string) (string, bool) {
	inner, ok := strings.CutPrefix(value, "=?base64?")
	if !ok || !strings.HasSuffix(inner, "?=") {
		return value, true
	}
	raw, err := base64.StdEncoding.DecodeString(strings.TrimSuffix(inner, "?="))
	return string(raw), err == nil
}

// printable returns a short text that is safe to repeat.
func printable(text string) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return -1
		}
		return r
	}, text)
	return text[:min(len(text), 64)]
}

// answer runs the request and answers it. It is shared by the two eras.
func (f *Face) answer(ctx context.Context, x *exchange) {
	if x.mount != "" {
		if _, err := f.o.Catalog.Server(x.mount); err != nil {
			e := x.faultOf(err)
			if e.status = http.StatusNotFound; schema.KindOf(err) == schema.KindUnavailable {
				e.status = http.StatusServiceUnavailable
			}
			x.fail(e)
			return
		}
	}
	ctx = x.span.Carry(ctx)
	x.ctx = ctx
	x.live()
	var result []byte
	var e *fault
	switch x.msg.method {
	case schema.MethodCallTool:
		result, e = f.callTool(ctx, x)
	case "tools/list", "resources/list", "resources/templates/list", "prompts/list":
		f.list(x)
		return
	case schema.MethodReadResource:
		result, e = f.readResource(ctx, x)
	case schema.MethodGetPrompt:
		result, e = f.getPrompt(ctx, x)
	case schema.MethodComplete:
		result, e = f.complete(ctx, x)
	case "server/discover":
		if !x.modern {
			e = noMethod(x.msg.method)
			break
		}
		result = f.discover(x)
	case "subscriptions/listen":
		if !x.modern {
			e = noMethod(x.msg.method)
			break
		}
		e = f.listen(ctx, x)
	case "tasks/get", "tasks/update", "tasks/cancel":
		result, e = f.task(ctx, x)
	default:
		e = noMethod(x.msg.method)
	}
	switch {
	case e != nil:
		x.fail(e)
	case result != nil:
		x.reply(x.stamped(result)...)
	}
}

// stamped returns the parts of a result with what its era wants in front: the bytes
// of the server's own stay as they are.
func (x *exchange) stamped(result []byte) [][]byte {
	if !x.modern || !isObject(result) {
		return [][]byte{result}
	}
	head := []byte{'{'}
	typed, cached := false, x.msg.method != schema.MethodReadResource
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
