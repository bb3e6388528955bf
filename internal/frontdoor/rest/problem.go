package rest

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/callyard/callyard/pkg/schema"
)

// Problem is the RFC 9457 document of every refusal.
type Problem struct {
	Type            string           `json:"type" format:"uri-reference" doc:"The kind of problem; it is stable, and the path explains it." example:"/problems/not-found"`
	Title           string           `json:"title" doc:"The kind of problem in words." example:"Not found"`
	Status          int              `json:"status" doc:"The HTTP status." example:"404"`
	Detail          string           `json:"detail" doc:"What is wrong, and how to fix it. It never repeats an argument." example:"There is no server \"files\". GET /servers lists the servers."`
	Error           string           `json:"error" doc:"The same sentence as detail, for clients that look here."`
	CallID          string           `json:"call_id,omitempty" doc:"The call that failed, once it had an id." example:"call_06b2t8m3c0w3v2q5n7k9a1d4fz"`
	Retryable       bool             `json:"retryable" doc:"The same request may be sent again without a second side effect."`
	CancelRequested bool             `json:"cancel_requested,omitempty" doc:"The call was asked to stop while it ran; nobody knows how far it had come."`
	Errors          []ProblemFault   `json:"errors,omitempty" nullable:"false" doc:"Each single fault."`
	RPC             *ProblemRPCError `json:"rpc,omitempty" doc:"The JSON-RPC error of the MCP server."`

	retryAfter time.Duration
}

// ProblemFault is one fault of the arguments, the body or a parameter.
type ProblemFault struct {
	Pointer   *string `json:"pointer,omitempty" doc:"A JSON pointer (RFC 6901) into the arguments or the body; empty is the whole." example:"/count"`
	Parameter string  `json:"parameter,omitempty" doc:"The query parameter, path parameter or header." example:"limit"`
	Message   string  `json:"message" doc:"What was expected there." example:"expected a number"`
}

// ProblemRPCError is a JSON-RPC error as the MCP server sent it.
type ProblemRPCError struct {
	Code    int64     `json:"code" example:"-32602"`
	Message string    `json:"message"`
	Data    *AnyValue `json:"data,omitempty"`
}

// failure is a problem on its way out of a handler of Huma's.
type failure struct{ *Problem }

// Error returns the detail.
func (f failure) Error() string { return f.Detail }

// GetStatus is the HTTP status; see [huma.StatusError].
func (f failure) GetStatus() int { return f.Status }

// ContentType makes Huma answer with the media type of problems.
func (f failure) ContentType(string) string { return "application/problem+json" }

// GetHeaders are the headers that belong to the problem.
func (f failure) GetHeaders() http.Header {
	h := make(http.Header)
	if after := f.retryAfterHeader(); after != "" {
		h.Set("Retry-After", after)
	}
	return h
}

// retryAfterHeader is in whole seconds, at least one, and always there with 429
// and 503.
func (p *Problem) retryAfterHeader() string {
	must := p.Status == http.StatusTooManyRequests || p.Status == http.StatusServiceUnavailable
	if p.retryAfter <= 0 && !must {
		return ""
	}
	return strconv.FormatInt(max(int64((p.retryAfter+time.Second-1)/time.Second), 1), 10)
}

// problem turns an error into its document, and logs the cause of one that is a
// fault of ours.
func (a *API) problem(err error) *Problem {
	e := schema.AsError(err)
	k := a.kindOf(e.Kind)
	if k.Kind == schema.KindInternal {
		cause := errors.Unwrap(e)
		if cause == nil {
			cause = err
		}
		a.log.Error("a request failed", "call", e.CallID, "error", cause)
	}
	p := &Problem{
		Type: "/problems/" + string(k.Kind), Title: k.Title, Status: k.Status, Detail: e.Detail, Error: e.Detail,
		CallID: e.CallID, Retryable: e.Retryable, CancelRequested: e.CancelRequested, retryAfter: e.RetryAfter,
	}
	for i := range e.Faults {
		p.Errors = append(p.Errors, ProblemFault{Pointer: &e.Faults[i].Pointer, Message: e.Faults[i].Message})
	}
	p.Errors = append(p.Errors, parameterFaults(err)...)
	if e.RPC != nil {
		p.RPC = &ProblemRPCError{Code: e.RPC.Code, Message: e.RPC.Message}
		if len(e.RPC.Data) > 0 {
			p.RPC.Data = &AnyValue{e.RPC.Data}
		}
	}
	return p
}

// fail answers with the problem of err.
func (a *API) fail(x *exchange, err error) {
	p := a.problem(err)
	if after := p.retryAfterHeader(); after != "" {
		x.set("Retry-After", after)
	}
	if p.CallID != "" {
		x.set("Callyard-Call-Id", p.CallID)
	}
	if p.Status == http.StatusUnauthorized {
		x.set("Www-Authenticate", `Bearer realm="callyard"`)
	}
	x.send(p.Status, a.fixed.problem, p.encode())
}

// encode returns the document as one line.
func (p *Problem) encode() []byte { return encode(p) }

// encode returns v as one line of JSON. The types of this package always encode;
// raw JSON inside them was checked when it came in.
func encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic("rest: encoding an answer: " + err.Error())
	}
	return b.Bytes()
}

// fromHuma turns Huma's own refusals into ours. Huma repeats what the caller
// sent; only the places and the expectations are kept.
func (a *API) fromHuma(_ huma.Context, _ string, v any) (any, error) {
	m, ok := v.(*huma.ErrorModel)
	if !ok {
		return v, nil
	}
	if m.Status >= http.StatusInternalServerError {
		return a.problem(schema.Errorf(schema.KindInternal, "The front door failed on this request; its log says why.")), nil
	}
	p := a.problem(schema.Errorf(schema.KindInvalidRequest, "The request is not what this path takes."))
	for i, e := range m.Errors {
		name := e.Location[strings.LastIndexByte(e.Location, '.')+1:]
		p.Errors = append(p.Errors, ProblemFault{Parameter: name, Message: e.Message})
		if i == 0 {
			p.Detail = "Parameter " + name + ": " + e.Message + "."
			p.Error = p.Detail
		}
	}
	return p, nil
}

// withOurStatus has Huma answer 400 to what it would answer 422: that status is
// for arguments that do not fit a tool's schema.
type withOurStatus struct{ humaContext }

// humaContext has another name than huma.Context because one of its methods is
// called Context.
type humaContext = huma.Context

// Unwrap lets the adapter reach its own context.
func (c withOurStatus) Unwrap() huma.Context { return c.humaContext }

// Header is a header of the request. Huma answers in JSON here whatever is accepted,
// and its reading of that header panics where it holds ";,".
func (c withOurStatus) Header(name string) string {
	if name == "Accept" {
		return ""
	}
	return c.humaContext.Header(name)
}

// SetStatus begins the answer.
func (c withOurStatus) SetStatus(status int) {
	if status == http.StatusUnprocessableEntity {
		status = http.StatusBadRequest
	}
	c.humaContext.SetStatus(status)
}
