package problem

import (
	"net/http"

	"github.com/callyard/callyard/pkg/schema"
)

// Kinds of failure that exist only in HTTP.
const (
	KindMethod      schema.Kind = "method-not-allowed"     // the path exists, the method does not
	KindMediaType   schema.Kind = "unsupported-media-type" // the body has an unsupported Content-Type
	KindBodyTimeout schema.Kind = "request-timeout"        // the body did not arrive in time
	KindChanged     schema.Kind = "precondition-failed"    // the resource does not match If-Match or If-None-Match
	KindUnguarded   schema.Kind = "precondition-required"  // the change has no precondition
)

// Row defines the HTTP representation of a kind of error.
type Row struct {
	Kind   schema.Kind
	Status int
	Title  string
	// Meaning and Fix are sentences for the page of the problem's type.
	Meaning string
	Fix     string
}

// statusCanceled is recorded for a caller that disconnected; it never receives it.
const statusCanceled = 499

// Rows returns a copy of the table of all kinds.
func Rows() []Row { return append([]Row(nil), rows[:]...) }

// rows is the only mapping from kinds of errors to HTTP statuses. The last row applies to all other
// kinds, which are internal errors.
var rows = [...]Row{
	{schema.KindInvalidRequest, http.StatusBadRequest, "Invalid request", "The body is not strict JSON, a parameter is invalid or unknown, or a member is missing.", "See detail and errors, and send a corrected request."},
	{schema.KindUnauthenticated, http.StatusUnauthorized, "No valid credential", "The request has no API key, or its key is unknown or has expired.", "Send Authorization: Bearer KEY, or X-API-Key: KEY."},
	{schema.KindForbidden, http.StatusForbidden, "Not allowed", "The caller is authenticated, but is not allowed to do this.", "The detail names the setting or the permission that is missing."},
	{schema.KindDisabled, http.StatusForbidden, "The tool is disabled", "An operator disabled the tool, or its definition changed and nobody has accepted the change; the detail has the reason.", "Use another tool, or ask the operator."},
	{schema.KindNotFound, http.StatusNotFound, "Not found", "The server, tool, resource or path does not exist, or you are not allowed to see it.", "List servers with GET /servers, and tools with GET /servers/{id}/tools."},
	{KindMethod, http.StatusMethodNotAllowed, "Method not allowed", "The path does not support this method.", "Use one of the methods in the Allow header."},
	{KindBodyTimeout, http.StatusRequestTimeout, "Timed out reading the request body", "The client sent the body too slowly.", "Send the request again over a faster connection."},
	{schema.KindConflict, http.StatusConflict, "Conflict", "The resource already exists, or its state does not allow this.", "See the detail for the state."},
	{schema.KindExpired, http.StatusGone, "Expired", "The call or its confirmation has expired. The call was not run.", "Send the call again to get a new confirmation."},
	{KindChanged, http.StatusPreconditionFailed, "The resource has changed", "The resource is not in the state that If-Match or If-None-Match names. Nothing was changed.", "Get the resource again, apply your change to what it is now, and send it with the new ETag."},
	{schema.KindTooLarge, http.StatusRequestEntityTooLarge, "The request is too large", "The request exceeds a limit of the front door.", "Send a smaller request, or ask the operator to raise the limit."},
	{KindMediaType, http.StatusUnsupportedMediaType, "Unsupported media type", "The Content-Type of the body is not JSON, or the body is compressed.", "Send Content-Type: application/json without Content-Encoding; curl --json does."},
	{schema.KindInvalidArguments, http.StatusUnprocessableEntity, "The arguments do not match the tool's schema", "The arguments are valid JSON, but do not match the tool's input schema; errors lists each fault with its JSON pointer.", "Correct the arguments; GET /servers/{id}/tools returns the schema."},
	{schema.KindKeyReused, http.StatusUnprocessableEntity, "The Idempotency-Key was used for another request", "The key belongs to a different request. Nothing was run.", "Use a new key for a new request."},
	{KindUnguarded, http.StatusPreconditionRequired, "If-Match is required", "The resource exists, and the request does not say which state of it is changed. Nothing was changed.", "Get the resource and send its ETag in If-Match; If-Match: * changes any state."},
	{schema.KindQuota, http.StatusTooManyRequests, "Quota exceeded", "You reached one of your limits. Nothing started.", "Wait as long as Retry-After says, then send the request again."},
	{schema.KindUnavailable, http.StatusServiceUnavailable, "Not available", "No live worker runs the server, all of them are full, or a part of Callyard such as NATS cannot be reached. If retryable is true, nothing started.", "If retryable is true, wait as long as Retry-After says, then send the request again. Otherwise check first whether it was stored."},
	{schema.KindServerFailed, http.StatusBadGateway, "The MCP server failed", "The MCP server cannot be reached or failed to start. The call did not start.", "See the reason in GET /servers/{id}, and tell the operator."},
	{schema.KindProtocol, http.StatusBadGateway, "The MCP server returned an error", "The MCP server returned a JSON-RPC error; it is in the member rpc.", "The error comes from the server; its message says how to correct the call."},
	{schema.KindResultTooLarge, http.StatusBadGateway, "The result is too large", "The tool ran, but its result exceeds the limit.", "Request less data from the tool, or ask the operator to raise the limit."},
	{schema.KindInputRequired, http.StatusConflict, "The tool requires input", "The tool requested input during the call, which this API cannot provide.", "Provide all input in the arguments, or use a client that can answer the tool's requests."},
	{schema.KindConnectRequired, http.StatusConflict, "Connect to the server first", "The server requires a credential of the person behind the call, and there is none. The call did not start.", "Open connect_url, connect, and send the call again."},
	{schema.KindOutcomeUnknown, http.StatusGatewayTimeout, "Unknown outcome", "The call was sent and no answer arrived, or it was canceled while it ran (cancel_requested). It may have run.", "Check its effects before you send it again, unless retryable is true."},
	{schema.KindCanceled, statusCanceled, "Canceled", "The call was canceled before it was sent and never ran, or its caller disconnected; the detail says which.", "No action is needed."},
	{schema.KindInternal, http.StatusInternalServerError, "Internal error", "Callyard failed; its log has the cause, under the request id.", "Give the request id to the operator."},
}

// row returns the row of a kind.
func row(k schema.Kind) *Row {
	for i := range rows {
		if rows[i].Kind == k {
			return &rows[i]
		}
	}
	return &rows[len(rows)-1]
}
