// Package problem writes an error as the RFC 9457 document that every HTTP interface of Callyard
// returns: a stable type, a sentence, and nothing that the caller sent.
//
// Each kind of error has one status, here and at the front door ([Rows]). The cause of an error
// never reaches a caller. The package does not log, and does not classify errors.
package problem

import (
	"encoding/json"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/callyard/callyard/internal/kit/plainjson"
	"github.com/callyard/callyard/pkg/schema"
)

// MediaType is the media type of the documents.
const MediaType = "application/problem+json"

// Document is an RFC 9457 problem document. OpenAPI documents are generated from its tags.
type Document struct {
	Type            string        `json:"type" format:"uri-reference" doc:"The kind of problem. It is stable, and its path serves an explanation." example:"/problems/not-found"`
	Title           string        `json:"title" doc:"The kind of problem as a short phrase." example:"Not found"`
	Status          int           `json:"status" doc:"The HTTP status." example:"404"`
	Detail          string        `json:"detail" doc:"The fault and the fix. It never contains an argument." example:"There is no server \"files\". GET /servers lists the servers."`
	Error           string        `json:"error" doc:"The same text as detail, for clients that read this member."`
	CallID          schema.CallID `json:"call_id,omitempty" doc:"The call that failed, if it had an id." example:"call_06b2t8m3c0w3v2q5n7k9a1d4fz"`
	Retryable       bool          `json:"retryable" doc:"Whether the same request can be sent again without a second side effect."`
	CancelRequested bool          `json:"cancel_requested,omitempty" doc:"Whether the call was asked to stop while it ran. It may have done part of its work."`
	ConnectURL      string        `json:"connect_url,omitempty" format:"uri" doc:"Where the person behind the call connects to the server, if it requires a credential of that person." example:"https://approve.example.com/connect/files"`
	Errors          []Fault       `json:"errors,omitempty" nullable:"false" doc:"Each fault of the arguments, the body or a parameter; absent if there is none."`
	RPC             *RPCError     `json:"rpc,omitempty" doc:"The JSON-RPC error of the MCP server; absent for other problems."`

	retryAfter time.Duration
}

// Fault is one fault of the arguments, the body or a parameter.
type Fault struct {
	Pointer   *string `json:"pointer,omitempty" doc:"A JSON pointer (RFC 6901) into the arguments or the body; empty means the whole document." example:"/count"`
	Parameter string  `json:"parameter,omitempty" doc:"The query parameter, path parameter or header." example:"limit"`
	Message   string  `json:"message" doc:"The value that was expected." example:"expected a number"`
}

// RPCError is a JSON-RPC error as the MCP server sent it.
type RPCError struct {
	Code    int64           `json:"code" doc:"The code of the JSON-RPC error." example:"-32602"`
	Message string          `json:"message" doc:"The message of the JSON-RPC error, as the MCP server sent it."`
	Data    json.RawMessage `json:"data,omitempty" doc:"Any JSON value, as the MCP server sent it."`
}

// Of returns the document of an error.
func Of(err error) Document {
	e := schema.AsError(err)
	r := row(e.Kind)
	d := Document{
		Type: "/problems/" + string(r.Kind), Title: r.Title, Status: r.Status, Detail: e.Detail, Error: e.Detail,
		CallID: e.CallID, Retryable: e.Retryable, CancelRequested: e.CancelRequested, ConnectURL: e.ConnectURL, retryAfter: e.RetryAfter,
	}
	for i := range e.Faults {
		d.Errors = append(d.Errors, Fault{Pointer: &e.Faults[i].Pointer, Message: e.Faults[i].Message})
	}
	if e.RPC != nil {
		d.RPC = &RPCError{Code: e.RPC.Code, Message: e.RPC.Message, Data: e.RPC.Data}
	}
	return d
}

// Status returns the HTTP status of a kind of error. An unknown kind is an internal error.
func Status(k schema.Kind) int { return row(k).Status }

// Encode returns the document as one line of JSON.
func (d *Document) Encode() []byte {
	line, err := plainjson.Line(d)
	if err != nil {
		panic("problem: encoding a document: " + err.Error()) // texts and numbers always encode, and data was validated on receipt
	}
	return line
}

// RetryAfter returns the value of the Retry-After header in whole seconds, at least 1. It is always set
// for 429 and 503, and "" if there is none.
func (d *Document) RetryAfter() string {
	if d.retryAfter <= 0 && d.Status != http.StatusTooManyRequests && d.Status != http.StatusServiceUnavailable {
		return ""
	}
	return strconv.FormatInt(max(int64((d.retryAfter+time.Second-1)/time.Second), 1), 10)
}

// Write answers a request with the document of err. Nothing may have been written before.
func Write(w http.ResponseWriter, err error) {
	d := Of(err)
	h := w.Header()
	h.Set("Content-Type", MediaType)
	h.Set("Cache-Control", "no-store")
	maps.Copy(h, d.Headers())
	w.WriteHeader(d.Status)
	_, _ = w.Write(d.Encode()) // the client has disconnected
}

// Headers returns the headers of the document, except for its media type.
func (d *Document) Headers() http.Header {
	h := make(http.Header)
	if after := d.RetryAfter(); after != "" {
		h.Set("Retry-After", after)
	}
	if d.CallID != "" {
		h.Set("Callyard-Call-Id", string(d.CallID))
	}
	if d.Status == http.StatusUnauthorized {
		h.Set("Www-Authenticate", `Bearer realm="callyard"`)
	}
	return h
}

// HumaError is a document as the error of a Huma operation, which is answered with it.
type HumaError struct{ *Document }

// Error returns the detail.
func (e HumaError) Error() string { return e.Detail }

// GetStatus returns the HTTP status.
func (e HumaError) GetStatus() int { return e.Status }

// GetHeaders returns the headers of the document.
func (e HumaError) GetHeaders() http.Header { return e.Headers() }

// ContentType returns the media type of problems.
func (e HumaError) ContentType(string) string { return MediaType }

// Printable returns at most n characters of text that are safe to repeat.
func Printable(text string, n int) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return -1
		}
		return r
	}, text)
	return text[:min(len(text), n)]
}
