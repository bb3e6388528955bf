package problem

import (
	"net/http"

	"github.com/callyard/callyard/pkg/schema"
)

// Kinds of failure that exist only in HTTP.
const (
	KindMethod      schema.Kind = "method-not-allowed"     // the path exists, the method does not
	KindMediaType   schema.Kind = "unsupported-media-type" // the body is declared as something else than is read
	KindBodyTimeout schema.Kind = "request-timeout"        // the body did not come
)

// Row says how a kind of error looks over HTTP.
type Row struct {
	Kind   schema.Kind
	Status int
	Title  string
	// Meaning and Fix are sentences for the page that a problem's type points to.
	Meaning string
	Fix     string
}

// statusCanceled is what a caller that went away would have read.
const statusCanceled = 499

// Rows returns a copy of the table of all kinds.
func Rows() []Row { return append([]Row(nil), rows[:]...) }

// rows is the one place where a kind of error meets an HTTP status. The last row is
// for kinds that are not among them: a fault of ours.
var rows = [...]Row{
	{schema.KindInvalidRequest, http.StatusBadRequest, "The request cannot be read", "The body is not strict JSON, a parameter is wrong or unknown, or a member is missing.", "Read the detail and the errors, and send a corrected request."},
	{schema.KindUnauthenticated, http.StatusUnauthorized, "No valid credential", "The request carries no API key, or one that is unknown or expired.", "Send Authorization: Bearer KEY, or X-API-Key: KEY."},
	{schema.KindForbidden, http.StatusForbidden, "Not allowed", "The caller is known, but this is not allowed here.", "The detail names what would have to change."},
	{schema.KindDisabled, http.StatusForbidden, "The tool is switched off", "An operator switched the tool off; the reason is in the detail.", "Use another tool, or ask the operator."},
	{schema.KindNotFound, http.StatusNotFound, "Not found", "There is no such server, tool, resource or path, or it is not yours to see.", "GET /servers and GET /servers/{id}/tools list what there is."},
	{KindMethod, http.StatusMethodNotAllowed, "The method is not allowed", "The path exists, but not with this method.", "The Allow header lists the methods."},
	{KindBodyTimeout, http.StatusRequestTimeout, "The body did not arrive in time", "The client sent the body too slowly.", "Send it again over a better connection."},
	{schema.KindConflict, http.StatusConflict, "Conflict", "It exists already, or is in a state that does not allow this.", "The detail names the state."},
	{schema.KindExpired, http.StatusGone, "Its time is over", "What was asked for has expired. Nothing was run.", "Send the call again, to be asked again."},
	{schema.KindTooLarge, http.StatusRequestEntityTooLarge, "The request is too large", "The request is over a limit of the front door.", "Send less, or ask the operator to raise the limit."},
	{KindMediaType, http.StatusUnsupportedMediaType, "Unsupported media type", "The body is declared as something other than JSON.", "Send Content-Type: application/json; curl --json does."},
	{schema.KindInvalidArguments, http.StatusUnprocessableEntity, "The arguments do not fit the tool's schema", "The arguments are sound JSON, but not what the tool takes; each fault is listed with its JSON pointer.", "Correct the arguments; GET /servers/{id}/tools has the schema."},
	{schema.KindKeyReused, http.StatusUnprocessableEntity, "The Idempotency-Key was used before", "The key stands for another request. Nothing was run.", "Use a new key for a new request."},
	{schema.KindQuota, http.StatusTooManyRequests, "Your quota is used up", "A limit of yours was reached. Nothing started.", "Wait for the time in Retry-After."},
	{schema.KindUnavailable, http.StatusServiceUnavailable, "No capacity at the moment", "No live worker offers the server, or all of them are full. Nothing started.", "Wait for the time in Retry-After and send it again."},
	{schema.KindServerFailed, http.StatusBadGateway, "The MCP server failed", "The MCP server cannot be reached or does not start. The call did not start.", "GET /servers/{id} says why; the operator can fix it."},
	{schema.KindProtocol, http.StatusBadGateway, "The MCP server answered with an error", "The MCP server answered the request with a JSON-RPC error; it is in the member rpc.", "The error is the server's own; its message says what it wants."},
	{schema.KindResultTooLarge, http.StatusBadGateway, "The result is too large", "The tool ran, but answered with more than the limit.", "Ask the tool for less, or ask the operator to raise the limit."},
	{schema.KindInputRequired, http.StatusConflict, "The tool asks for input", "The tool wants input in the middle of the call, which this way of calling cannot give.", "Call it with all the input that it needs, or over a client that can answer."},
	{schema.KindOutcomeUnknown, http.StatusGatewayTimeout, "The outcome is not known", "The call left and no answer came back, or it was canceled while it ran (cancel_requested). It may have run.", "Look at its effects before you send it again, unless retryable is true."},
	{schema.KindCanceled, statusCanceled, "Canceled", "The call was canceled before it was sent and never ran, or its caller left; the detail says which.", "Nothing is to be done."},
	{schema.KindInternal, http.StatusInternalServerError, "A fault of Callyard", "Callyard failed; its log says why, under the request id.", "Tell the operator the request id."},
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
