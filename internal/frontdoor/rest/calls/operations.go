package calls

import (
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"github.com/callyard/callyard/internal/calls"
	"github.com/callyard/callyard/internal/frontdoor/rest/httpapi"
	"github.com/callyard/callyard/internal/frontdoor/rest/openapi"
	"github.com/callyard/callyard/internal/frontdoor/rest/submit"
	"github.com/callyard/callyard/pkg/schema"
)

func exampleResult() any {
	return map[string]any{"content": []any{map[string]any{"type": "text", "text": "Echo: hello"}}}
}

func exampleCompleted() any {
	return map[string]any{"content": []any{map[string]any{"type": "text", "text": "Echo: hello"}}, submit.MemberOutcome: submit.OutcomeCompleted}
}

func (c *handlers) opCallTool(d *httpapi.Document) huma.Operation {
	op := openapi.Operation(http.MethodPost, "/servers/{id}/tools/{tool}", "call-tool", openapi.TagCalls, "Call a tool",
		"Runs the tool and waits for its result. The body is the arguments object, which reaches the tool byte for byte; without a body the tool gets an empty object. "+
			"A tool that fails returns a result with isError true and status 200. Arguments can have up to "+openapi.ByteSize(c.limits.ArgumentBytes)+".", submit.CallStatuses()...)
	op.Parameters = append([]*huma.Param{openapi.ServerParam(), openapi.ToolParam()}, c.runner.StoredCallParams()...)
	op.RequestBody = openapi.JSONBody(openapi.Object("The arguments of the tool."), false, "The arguments of the tool.", map[string]any{"message": "hello"})
	op.Responses["200"] = submit.Answered(submit.SchemaResult, "The result of the tool.", exampleResult())
	c.runner.MayHold(d, &op, submit.OneOfAnswers("", submit.OutcomeHeld, submit.OutcomeAccepted))
	return op
}

func (c *handlers) opCall(d *httpapi.Document) huma.Operation {
	op := openapi.Operation(http.MethodPost, "/calls", "create-call", openapi.TagCalls, "Call a tool named in the body",
		"The same as calling the tool by its path, with one request schema for all tools. Every answer has the member outcome: completed with the result of the tool, held if somebody must approve the call first, or accepted if it is stored and continues. Generated clients should use this operation and check outcome.", submit.CallStatuses()...)
	op.Parameters = c.runner.StoredCallParams()
	op.RequestBody = openapi.JSONBody(openapi.Ref(schemaRequest), true, "The call.", map[string]any{
		"server": "everything", "tool": "echo", "arguments": map[string]any{"message": "hello"}, "timeout_ms": 5000,
	})
	op.Responses["200"] = submit.Answered(submit.SchemaResult, "The result of the tool.", exampleResult())
	if c.calls.CanHold() {
		// Many generators use the schema of the first answer for all answers.
		op.Responses["200"] = submit.Answered(submit.SchemaAnswer, "The result of the tool: a CompletedCall, outcome completed.", exampleCompleted())
	}
	c.runner.MayHold(d, &op, openapi.Ref(submit.SchemaAnswer))
	return op
}

// schemaRequest is the name of the schema of the body of POST /calls.
const schemaRequest = "CallRequest"

// describe adds the schemas to the document that no Go type describes.
func (c *handlers) describe(d *httpapi.Document) {
	d.NameSchema(reflect.TypeFor[calls.Page](), "CallList")
	d.NameSchema(reflect.TypeFor[calls.View](), schemaRecord)
	d.NameSchema(reflect.TypeFor[calls.ViewError](), "CallRecordError")
	d.NameSchema(reflect.TypeFor[calls.DryRun](), "PolicyDryRun")
	d.NameSchema(reflect.TypeFor[calls.DryRunUnknown](), "PolicyDryRunUnknown")
	d.NameSchema(reflect.TypeFor[calls.DryRunRule](), "PolicyDryRunRule")
	d.NameSchema(reflect.TypeFor[calls.DryRunChange](), "PolicyDryRunChange")
	d.NameSchema(reflect.TypeFor[DryRunRequest](), "PolicyDryRunRequest")
	d.NameSchema(reflect.TypeFor[calls.PolicyDecision](), "PolicyDecision")
	d.NameSchema(reflect.TypeFor[calls.PolicyApproval](), "PolicyDecisionApproval")
	d.NameSchema(reflect.TypeFor[schema.Fault](), "ArgumentFault")
	d.NameSchema(reflect.TypeFor[PolicyTestRequest](), "PolicyTestRequest")
	d.NameSchema(reflect.TypeFor[PolicyTestPrincipal](), "PolicyTestPrincipal")
	d.NameSchema(reflect.TypeFor[calls.Allow](), "Allowance")
	d.NameSchema(reflect.TypeFor[calls.Pattern](), "AllowancePattern")
	d.NameSchema(reflect.TypeFor[calls.Value](), "AllowanceValue")
	d.Schemas()[schemaRequest] = &huma.Schema{
		Type: huma.TypeObject, AdditionalProperties: false, Required: []string{"server", "tool"},
		Properties: map[string]*huma.Schema{
			"server":       openapi.Text("The id of the server."),
			"tool":         openapi.Text("The name of the tool."),
			"arguments":    openapi.Object("The arguments; they reach the tool unchanged. The default is an empty object."),
			"timeout_ms":   c.runner.TimeoutSchema("The timeout of the call, in milliseconds. The default is the timeout of the server."),
			"callback_url": openapi.Text("The URL that is notified when the call ends; the call becomes durable. Available only if the operator enabled callbacks."),
		},
	}
	d.AtLast(func(all map[string]*huma.Schema) {
		openapi.ForbidUnknownMembers(all, "ConfirmRequest", "SettleRequest", "PolicyDryRunRequest", "PolicyTestRequest", "PolicyTestPrincipal")
		openapi.DescribeMember(all, "PolicyTestRequest", "arguments", openapi.Object(""))
		submit.DescribeCall(all, schemaRecord)
	})
}

// schemaRecord is the name of the schema of a call record.
const schemaRecord = "CallRecord"
