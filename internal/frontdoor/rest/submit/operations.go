package submit

import (
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"github.com/callyard/callyard/internal/frontdoor/rest/httpapi"
	"github.com/callyard/callyard/internal/frontdoor/rest/openapi"
)

// Names of the schemas of tool results.
const (
	SchemaResult    = "CallToolResult"
	schemaBlock     = "ContentBlock"
	schemaCallState = "CallState"
	schemaCall      = "Call"
)

// CallStatuses returns the statuses with which a call can be refused, in addition to those of every
// operation and of its body.
func CallStatuses() []int { return append(ReadStatuses(), http.StatusUnprocessableEntity) }

// ReadStatuses returns those of a request to an MCP server whose arguments have no schema.
func ReadStatuses() []int {
	return []int{http.StatusNotFound, http.StatusConflict, http.StatusBadGateway, http.StatusGatewayTimeout}
}

// CallParams returns the parameters that every call accepts in addition to its body.
func (u *Runner) CallParams() []*huma.Param {
	ms := &huma.Schema{Type: huma.TypeInteger, Minimum: new(1.0), Maximum: new(float64(u.limits.MaxTimeout.Milliseconds()))}
	return []*huma.Param{
		{Name: "timeout_ms", In: "query", Description: "The timeout of the call in milliseconds; it takes precedence over the header.", Schema: ms, Example: 5000},
		{Name: "Callyard-Timeout-Ms", In: "header", Description: "The timeout of the call in milliseconds, as a header.", Schema: ms, Example: 5000},
		{Name: "Cache-Control", In: "header", Description: "no-cache runs the tool even if a cached result is available; no-store prevents caching of the result.", Schema: &huma.Schema{Type: huma.TypeString}, Example: "no-cache"},
		{Name: "traceparent", In: "header", Description: "W3C trace context; it is forwarded to the MCP server and echoed.", Schema: &huma.Schema{Type: huma.TypeString}, Example: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"},
		{Name: "tracestate", In: "header", Description: "W3C trace state; it is forwarded with traceparent.", Schema: &huma.Schema{Type: huma.TypeString}, Example: "vendor=value"},
	}
}

// StoredCallParams returns the parameters that a tool call accepts in addition to its body. Some of
// them make the call stored before it runs.
func (u *Runner) StoredCallParams() []*huma.Param {
	return append(u.CallParams(),
		&huma.Param{Name: "Prefer", In: "header", Description: "respond-async: store the call and answer at once with 202 and its path; wait=SECONDS: do so if it takes longer (RFC 7240).", Schema: &huma.Schema{Type: huma.TypeString}, Example: "respond-async"},
		httpapi.IdempotencyParam(),
		&huma.Param{Name: httpapi.HeaderCallback, In: "header", Description: "The URL that is notified when the call ends; the call becomes durable. Available only if the operator enabled callbacks.", Schema: &huma.Schema{Type: huma.TypeString}, Example: "https://example.com/hooks/callyard"},
	)
}

// TimeoutSchema returns the schema of the timeout of a call, in milliseconds.
func (u *Runner) TimeoutSchema(description string) *huma.Schema {
	return &huma.Schema{Type: huma.TypeInteger, Minimum: new(1.0), Maximum: new(float64(u.limits.MaxTimeout.Milliseconds())), Description: description}
}

// Answered returns a response 200 with the JSON of the MCP server, or an event stream for callers
// that request one.
func Answered(name, description string, example any) *huma.Response {
	return &huma.Response{
		Description: description,
		Headers: map[string]*huma.Param{
			"Callyard-Call-Id": openapi.Header("The id of the call.", huma.TypeString, "call_06b2t8m3c0w3v2q5n7k9a1d4fz"),
			"Callyard-Worker":  openapi.Header("The worker that ran it.", huma.TypeString, "worker-1-7f3k2a"),
			"Cache-Status":     openapi.Header("If the policy allows caching results of this call: whether the result comes from the cache (RFC 9211).", huma.TypeString, "callyard; hit; ttl=42"),
			"Age":              openapi.Header("The age of a cached result, in seconds.", huma.TypeInteger, 18),
			"X-Request-Id":     openapi.Header("The id of the request in the operator's log.", huma.TypeString, "req_06b2t8m3c0w3v2q5n7k91"),
		},
		Content: map[string]*huma.MediaType{
			"application/json":  {Schema: openapi.Ref(name), Example: example},
			"text/event-stream": {Schema: openapi.Text("With Accept: text/event-stream: progress events with the params of each notification, then one result event with the result, or an error event with a problem document. A call that fails before the first event returns an ordinary problem."), Example: "event: progress\ndata: {\"progressToken\":\"1\",\"progress\":1,\"total\":2}\n\nevent: result\ndata: {\"content\":[]}\n\n"},
		},
	}
}

// MayReplay documents the header with which an answer tells that an earlier request with the same
// Idempotency-Key has made it.
func MayReplay(res *huma.Response) {
	if res.Headers == nil {
		res.Headers = make(map[string]*huma.Param)
	}
	res.Headers["Idempotency-Replayed"] = openapi.Header("true if an earlier request with the same Idempotency-Key started the work; else absent.", huma.TypeString, "true")
}

// MayHold documents that a call may be replayed, and held until it is confirmed.
func (u *Runner) MayHold(d *httpapi.Document, op *huma.Operation, held *huma.Schema) {
	MayReplay(op.Responses["200"])
	if !u.calls.CanHold() {
		return
	}
	d.SchemaOf(reflect.TypeFor[ConfirmationRequest]())
	d.SchemaOf(reflect.TypeFor[CallState]())
	op.Responses["202"] = &huma.Response{
		Description: "The tool has not answered. Either the call is held until it is confirmed or approved, and has not run: a ConfirmationRequest with outcome held. Or it was stored, as Prefer requested, and continues without the caller: an AcceptedCall with outcome accepted.",
		Headers:     map[string]*huma.Param{"Location": openapi.Header("The path of the call, which returns its state.", huma.TypeString, "/calls/call_06b2t8m3c0w3v2q5n7k9a1d4fz")},
		Content:     map[string]*huma.MediaType{"application/json": {Schema: held, Examples: exampleAnswers()}},
	}
	MayReplay(op.Responses["202"])
}

// exampleAnswers are the answers to a call that has no result yet.
func exampleAnswers() map[string]*huma.Example {
	return map[string]*huma.Example{
		OutcomeHeld: {Summary: "The call is held, and has not run.", Value: map[string]any{
			MemberOutcome: OutcomeHeld, "requires_confirmation": true, "confirmation_id": "cyt_2Jb0Z5nJk3m8q1r7s9t0u2v4w6x8y0z1a3b5c7d9e1f", "call_id": "call_06b2t8m3c0w3v2q5n7k9a1d4fz",
			"approval_id": "appr_06b2t8m3c0w3v2q5n7k9a1d4fz", "risk_level": 2, "risk_description": "Medium risk - Requires confirmation", "server_id": "everything", "method": "tools/call",
			"tool_name": "echo", "expires_at": "2026-01-02T03:14:05Z",
		}},
		OutcomeAccepted: {Summary: "The call is stored, and continues.", Value: map[string]any{
			MemberOutcome: OutcomeAccepted, "id": "call_06b2t8m3c0w3v2q5n7k9a1d4fz", "state": "queued", "server": "everything", "tool": "echo", "created": "2026-01-02T03:04:05Z",
		}},
	}
}

// ExampleCall is the state of a call that has ended.
func ExampleCall() map[string]any {
	return map[string]any{
		"id": "call_06b2t8m3c0w3v2q5n7k9a1d4fz", "state": "succeeded", "server": "everything", "tool": "echo", "created": "2026-01-02T03:04:05Z", "ended": "2026-01-02T03:04:06Z",
		"worker": "worker-1-7f3k2a", "attempt": 1, "result": map[string]any{"content": []any{map[string]any{"type": "text", "text": "Echo: hello"}}},
	}
}

// addResult adds the schema of results to the document.
func addResult(d *httpapi.Document) {
	all := d.Schemas()
	all[schemaBlock] = openapi.OpenObject("A content block of a result, exactly as the MCP server sent it. Its members depend on its type, and it can have others.", map[string]*huma.Schema{
		"type": openapi.Text("text, image, audio, resource, resource_link, or another type of the server."), "text": openapi.Text("The text, for type text."),
		"data": openapi.Text("The data in Base64, for types image and audio."), "mimeType": openapi.Text("The media type of the data or the resource."),
		"resource": openapi.Object("The content of the resource, for type resource."), "uri": openapi.Text("The URI of the resource, for type resource_link."), "name": openapi.Text("The name of the resource."),
	})
	result := openapi.OpenObject("The result of the tool, exactly as the MCP server sent it. A tool that failed has isError true.", map[string]*huma.Schema{
		"content":           {Type: huma.TypeArray, Items: openapi.Ref(schemaBlock), Description: "Content blocks; each has a type."},
		"structuredContent": {Description: "The result as JSON, if the tool has an output schema."},
		"isError":           {Type: huma.TypeBoolean, Description: "True when the tool failed."},
		"_meta":             openapi.Object("Metadata of the server."),
		"execution_environment": openapi.OpenObject("The sandbox in which the tool ran, as reported by Callyard and not by the server; present only if the call was isolated.", map[string]*huma.Schema{
			"risk_level": openapi.Described(&huma.Schema{Type: huma.TypeInteger}, "The risk level of the server, from 1 to 3."), "risk_description": openapi.Text("The risk level as text."), "docker": openapi.Described(openapi.Boolean(), "Whether the sandbox is a container."), "docker_image": openapi.Text("The image that the operator configured."),
			"isolation": openapi.Text("The isolation of the tool: container, or bubblewrap, which is weaker."), "runtime": openapi.Text("The runtime of the container, such as runc or runsc."),
		}),
	})
	openapi.Plain(result)
	all[SchemaResult] = result
}
