package openapi

import (
	"cmp"
	"net/http"
	"strconv"

	"github.com/danielgtaylor/huma/v2"
)

// The sections of the document.
const (
	TagCalls       = "Calls"
	TagServers     = "Servers"
	TagSets        = "Sets"
	TagFleet       = "Fleet"
	TagBatches     = "Batches"
	TagKeys        = "Keys"
	TagUsage       = "Usage"
	TagTenants     = "Tenants"
	TagWebhooks    = "Webhooks"
	TagAudit       = "Audit"
	TagEvaluations = "Evaluations"
)

// Operation begins the description of an operation. statuses are those with which it refuses a
// request, in addition to those of every operation: 400 for an unknown parameter, 401, 403 for a
// foreign web page or a missing scope, 429 after too many wrong credentials, and 503 while the
// credential cannot be checked. [Document.HandleAt] of package httpapi adds those for bodies.
func Operation(method, path, id, tag, summary, description string, statuses ...int) huma.Operation {
	return huma.Operation{
		Method: method, Path: path, OperationID: id, Tags: []string{tag}, Summary: summary, Description: description,
		Responses: Refusals(append(statuses, http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests, http.StatusServiceUnavailable)...),
	}
}

// With returns an operation with these parameters added.
func With(op huma.Operation, params ...*huma.Param) huma.Operation {
	op.Parameters = params
	return op
}

// Answers returns an operation with a description of its answer. example may be nil. The schema is
// derived from the Go type of the answer.
func Answers(op huma.Operation, description string, example any) huma.Operation {
	status := cmp.Or(op.DefaultStatus, http.StatusOK)
	op.Responses[strconv.Itoa(status)] = &huma.Response{Description: description, Content: map[string]*huma.MediaType{"application/json": {Example: example}}}
	return op
}

// Public returns an operation that requires no credential. statuses are those with which it refuses a
// request, in addition to 400 and 403.
func Public(op huma.Operation, statuses ...int) huma.Operation {
	op.Responses = Refusals(append(statuses, http.StatusBadRequest, http.StatusForbidden)...)
	op.Security = []map[string][]string{}
	return op
}

// PathParam describes a path parameter.
func PathParam(name, description, example string) *huma.Param {
	return &huma.Param{Name: name, In: "path", Required: true, Description: description, Schema: &huma.Schema{Type: huma.TypeString}, Example: example}
}

// QueryParam describes a query parameter.
func QueryParam(name, description string, s *huma.Schema) *huma.Param {
	return &huma.Param{Name: name, In: "query", Description: description, Schema: s}
}

// MatchParam describes the header If-Match of an operation that changes a resource.
func MatchParam() *huma.Param {
	return &huma.Param{Name: "If-Match", In: "header", Description: "The ETag of the version that you change; * changes any version.", Schema: &huma.Schema{Type: huma.TypeString}, Example: `"12"`}
}

// ServerParam describes the server in a path.
func ServerParam() *huma.Param { return PathParam("id", "The id of a server.", "everything") }

// ToolParam describes the tool in a path.
func ToolParam() *huma.Param {
	return PathParam("tool", "The name of a tool, percent-encoded; a/b is a%2Fb.", "echo")
}

// Refusals returns the responses of an operation that refuses requests with these statuses.
func Refusals(statuses ...int) map[string]*huma.Response {
	responses := map[string]*huma.Response{"default": {Ref: "#/components/responses/Problem"}}
	for _, status := range statuses {
		responses[strconv.Itoa(status)] = &huma.Response{Ref: "#/components/responses/Problem" + strconv.Itoa(status)}
	}
	return responses
}

// BodyRefusals returns the responses of an operation that refuses a body: because it is too large, is
// not of a supported media type or, if it is JSON, did not arrive in time. A stream of lines that
// stops is refused with 400: after a 408, clients may repeat the request by themselves (RFC 9110), and
// the first calls, which are stored, would run twice.
func BodyRefusals(body *huma.RequestBody) map[string]*huma.Response {
	statuses := []int{http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType}
	if body.Content["application/json"] != nil {
		statuses = append(statuses, http.StatusRequestTimeout)
	}
	return Refusals(statuses...)
}

// Header describes a response header.
func Header(text, kind string, example any) *huma.Param {
	return &huma.Param{Description: text, Schema: &huma.Schema{Type: kind}, Example: example}
}

// JSONAnswer returns a JSON response whose schema has this name. example may be nil.
func JSONAnswer(name, description string, example any) *huma.Response {
	return &huma.Response{Description: description, Content: map[string]*huma.MediaType{"application/json": {Schema: Ref(name), Example: example}}}
}

// JSONBody returns a JSON body. example may be nil.
func JSONBody(s *huma.Schema, required bool, description string, example any) *huma.RequestBody {
	return &huma.RequestBody{Description: description, Required: required, Content: map[string]*huma.MediaType{"application/json": {Schema: s, Example: example}}}
}

// ByteSize formats a number of bytes for descriptions.
func ByteSize(n int) string {
	if n >= 1<<20 && n%(1<<20) == 0 {
		return strconv.Itoa(n>>20) + " MiB"
	}
	if n >= 1<<10 && n%(1<<10) == 0 {
		return strconv.Itoa(n>>10) + " KiB"
	}
	return strconv.Itoa(n) + " bytes"
}
