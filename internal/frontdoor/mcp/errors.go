package mcp

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/callyard/callyard/internal/kit/mcpwire"
	"github.com/callyard/callyard/pkg/schema"
)

// fault is a JSON-RPC error to send.
type fault struct {
	Code    int64           `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`

	status int  // HTTP status; 0 derives it from the code
	silent bool // no client waits for it
}

func invalid(message string) *fault {
	return &fault{Code: mcpwire.CodeInvalidRequest, Message: message}
}

func invalidParams(message string) *fault {
	return &fault{Code: mcpwire.CodeInvalidParams, Message: message}
}

// unavailable returns the error for a request that may be sent again later.
func unavailable(message string) *fault {
	return &fault{Code: mcpwire.CodeUnavailable, Message: message, status: http.StatusServiceUnavailable}
}

// encode returns the error as JSON.
func (f *fault) encode() []byte {
	raw, err := json.Marshal(f)
	if err != nil { // error data of a server that is not valid JSON
		f.Data = nil
		raw, _ = json.Marshal(f)
	}
	return raw
}

// httpStatus returns the HTTP status of an answer that consists of this error.
func (f *fault) httpStatus(modern bool) int {
	if f.status != 0 {
		return f.status
	}
	switch f.Code {
	case mcpwire.CodeParse, mcpwire.CodeInvalidRequest:
		return http.StatusBadRequest
	case mcpwire.CodeMethodNotFound:
		if modern {
			return http.StatusNotFound
		}
	case mcpwire.CodeInvalidParams, mcpwire.CodeHeaderMismatch, mcpwire.CodeMissingCapability, mcpwire.CodeUnsupportedVersion:
		if modern {
			return http.StatusBadRequest
		}
	}
	return http.StatusOK
}

// kindCode maps a kind of error to its JSON-RPC code. Callyard's own codes lie outside the ranges
// that JSON-RPC and MCP reserve.
func kindCode(k schema.Kind) int64 {
	switch k {
	case schema.KindInvalidRequest, schema.KindInvalidArguments, schema.KindNotFound, schema.KindTooLarge:
		return mcpwire.CodeInvalidParams
	case schema.KindUnauthenticated:
		return -31401
	case schema.KindForbidden, schema.KindDisabled:
		return -31403
	case schema.KindConflict, schema.KindKeyReused, schema.KindInputRequired, schema.KindConnectRequired:
		return -31409
	case schema.KindExpired:
		return -31410
	case schema.KindQuota:
		return -31429
	case schema.KindCanceled:
		return -31499
	case schema.KindServerFailed, schema.KindResultTooLarge, schema.KindProtocol:
		return -31502
	case schema.KindUnavailable:
		return mcpwire.CodeUnavailable
	case schema.KindOutcomeUnknown:
		return -31504
	}
	return mcpwire.CodeInternal
}

// errorData is the machine-readable data of a Callyard error.
type errorData struct {
	Kind         schema.Kind    `json:"kind"`
	CallID       schema.CallID  `json:"call_id,omitempty"`
	Retryable    bool           `json:"retryable"`
	Cancel       bool           `json:"cancel_requested,omitempty"`
	RetryAfterMS int64          `json:"retry_after_ms,omitempty"`
	ConnectURL   string         `json:"connect_url,omitempty"`
	Faults       []schema.Fault `json:"errors,omitempty"`
}

func errorDataOf(e *schema.Error) errorData {
	return errorData{
		Kind: e.Kind, CallID: e.CallID, Retryable: e.Retryable, Cancel: e.CancelRequested, RetryAfterMS: e.RetryAfter.Milliseconds(), ConnectURL: e.ConnectURL, Faults: e.Faults,
	}
}

func dataOf(e *schema.Error) json.RawMessage {
	raw, err := json.Marshal(errorDataOf(e))
	if err != nil {
		return nil // strings and numbers always marshal
	}
	return raw
}

// faultOf turns an error into a JSON-RPC error. An error of the MCP server is forwarded
// unchanged, except for codes that the client's revision does not have.
func (x *exchange) faultOf(err error) *fault {
	if f := x.pageFault(schema.AsError(err)); f != nil {
		return f
	}
	e := ownPages(schema.AsError(err))
	switch {
	case e.Kind == schema.KindProtocol && e.RPC != nil:
		return &fault{Code: x.codeOf(e.RPC.Code), Message: e.RPC.Message, Data: e.RPC.Data, status: forwardedStatus(e.RPC.Code)}
	case (e.Kind == schema.KindCanceled || e.CancelRequested) && x.isCanceled():
		return &fault{Code: kindCode(e.Kind), Message: e.Detail, silent: true}
	case e.Kind == schema.KindInternal:
		x.ep.log.Error("a request failed", "call", e.CallID, "error", cmp.Or(errors.Unwrap(e), err))
	}
	f := &fault{Code: kindCode(e.Kind), Message: e.Detail, Data: dataOf(e)}
	if e.Kind == schema.KindNotFound && !x.modern && x.msg.method == schema.MethodReadResource {
		f.Code = mcpwire.CodeNoResource
	}
	return f
}

// forwardedStatus returns the HTTP status of a server's error, 0 for the one of its code. This endpoint
// accepted the request. With 404 or 400 a client would conclude that the method, the revision or the
// request is wrong here, and SDKs then report a failed connection in place of the error. Only a
// missing capability is a matter of the client, and the specification requires 400 for it.
func forwardedStatus(code int64) int {
	if code == mcpwire.CodeMissingCapability {
		return 0
	}
	return http.StatusOK
}

// codeOf returns the code of a server's error in the client's revision: 2026-07-28 no longer
// allows these two.
func (x *exchange) codeOf(code int64) int64 {
	switch {
	case x.modern && code == mcpwire.CodeNoResource:
		return mcpwire.CodeInvalidParams
	case x.modern && code == mcpwire.CodeURLElicitation:
		return kindCode(schema.KindProtocol)
	}
	return code
}

// toolFault answers a failed tool call. Errors that a model can act on are results with isError
// (SEP-1303), all others are protocol errors.
func (x *exchange) toolFault(err error) ([]byte, *fault) {
	if f := x.pageFault(schema.AsError(err)); f != nil {
		return nil, f
	}
	e := ownPages(schema.AsError(err))
	if e.CancelRequested { // the client that canceled must learn that the tool did not end the call
		return nil, x.faultOf(err)
	}
	switch e.Kind {
	case schema.KindInternal, schema.KindProtocol, schema.KindNotFound, schema.KindInvalidRequest, schema.KindTooLarge, schema.KindCanceled, schema.KindUnauthenticated:
		return nil, x.faultOf(err)
	}
	text := e.Detail
	// The detail ends with the message of the first fault, without its location.
	if len(e.Faults) > 1 || len(e.Faults) == 1 && e.Faults[0].Pointer != "" {
		var all strings.Builder
		all.WriteString(strings.TrimSuffix(text, " "+e.Faults[0].Message))
		for _, f := range e.Faults {
			all.WriteString("\n" + strings.TrimPrefix(f.Pointer+": ", ": ") + f.Message)
		}
		text = all.String()
	}
	if e.Retryable {
		text += " You can send the same call again."
	}
	return errorResult(text, metaError, dataOf(e)), nil
}

// errorResult is a result with isError and one text.
func errorResult(text, metaKey string, about []byte) []byte {
	b := appendQuoted([]byte(`{"content":[{"type":"text","text":`), text)
	b = append(b, `}],"isError":true`...)
	if about != nil {
		b = append(appendMember(append(b, `,"_meta":{`...), metaKey, about), '}')
	}
	return append(b, '}')
}
