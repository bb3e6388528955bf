package httpapi

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/callyard/callyard/internal/bodies"
	"github.com/callyard/callyard/internal/kit/plainjson"
	"github.com/callyard/callyard/internal/problem"
	"github.com/callyard/callyard/pkg/schema"
)

// Problems builds problem documents from errors. It is safe for concurrent use.
type Problems struct{ log *slog.Logger }

// Of turns an error into its document. It logs the cause of an internal error.
func (p *Problems) Of(err error) *problem.Document {
	d := problem.Of(err)
	if d.Status == http.StatusInternalServerError {
		e := schema.AsError(err)
		p.log.Error("a request failed", "call", e.CallID, "error", cmp.Or(errors.Unwrap(e), err))
	}
	d.Errors = append(d.Errors, parameterFaults(err)...)
	return &d
}

// Fail answers with the problem of err.
func (x *Exchange) Fail(err error) {
	p := x.shared.Problems.Of(err)
	if after := p.RetryAfter(); after != "" {
		x.Set("Retry-After", after)
	}
	if p.CallID != "" {
		x.Set("Callyard-Call-Id", string(p.CallID))
	}
	if p.Status == http.StatusUnauthorized && x.Header()["Www-Authenticate"] == nil {
		x.Set("Www-Authenticate", `Bearer realm="callyard"`)
	}
	x.Send(p.Status, x.shared.fixed.problem, p.Encode())
}

// Encode returns v as one line of JSON. It panics if v cannot be encoded, which does not happen for
// the types of this package: raw JSON inside them was validated when it was received.
func Encode(v any) []byte {
	line, err := plainjson.Line(v)
	if err != nil {
		panic("rest: encoding an answer: " + err.Error())
	}
	return line
}

// EncodeInline is like [Encode] without the line feed at the end, for JSON inside an event or inside
// other JSON.
func EncodeInline(v any) []byte { return bytes.TrimSuffix(Encode(v), []byte("\n")) }

// fromHuma converts Huma's refusals into problem documents. Huma repeats the caller's input, so
// only the locations and the expectations are kept.
func (p *Problems) fromHuma(_ huma.Context, _ string, v any) (any, error) {
	m, ok := v.(*huma.ErrorModel)
	if !ok {
		return v, nil
	}
	if m.Status >= http.StatusInternalServerError {
		return p.Of(schema.Errorf(schema.KindInternal, "The front door failed on this request; its log has the cause.")), nil
	}
	d := p.Of(schema.Errorf(schema.KindInvalidRequest, "The request is not valid for this path."))
	for i, e := range m.Errors {
		name := e.Location[strings.LastIndexByte(e.Location, '.')+1:]
		d.Errors = append(d.Errors, problem.Fault{Parameter: name, Message: e.Message})
		if i == 0 {
			d.Detail = "Parameter " + name + ": " + e.Message + "."
			d.Error = d.Detail
		}
	}
	return d, nil
}

// withOurStatus makes Huma answer 400 instead of 422, which is reserved for arguments that do not
// match a tool's schema.
type withOurStatus struct{ humaContext }

// humaContext is an alias because huma.Context, when embedded, would conflict with its own method
// Context.
type humaContext = huma.Context

// Unwrap lets the adapter access its own context.
func (c withOurStatus) Unwrap() huma.Context { return c.humaContext }

// Header returns a header of the request. It hides Accept: Huma always answers in JSON here, and
// its parser panics on a header that contains ";,".
func (c withOurStatus) Header(name string) string {
	if name == "Accept" {
		return ""
	}
	return c.humaContext.Header(name)
}

// BodyWriter returns a writer with the same time limits as [Exchange.Send].
func (c withOurStatus) BodyWriter() io.Writer {
	w := c.humaContext.BodyWriter()
	if x, ok := w.(*Exchange); ok {
		return timedWriter{x}
	}
	return w
}

// timedWriter is a writer that limits the time for a client to read a large answer.
type timedWriter struct{ x *Exchange }

// Write writes a whole answer.
func (t timedWriter) Write(body []byte) (int, error) {
	defer bodies.LimitWrite(t.x.ResponseWriter, len(body))()
	return t.x.Write(body)
}

// SetStatus sends the status, with 422 replaced by 400.
func (c withOurStatus) SetStatus(status int) {
	if status == http.StatusUnprocessableEntity {
		status = http.StatusBadRequest
	}
	c.humaContext.SetStatus(status)
}
