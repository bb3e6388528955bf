package tools

import (
	"encoding/json"
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"github.com/callyard/callyard/internal/format"
	"github.com/callyard/callyard/internal/frontdoor/rest/httpapi"
	"github.com/callyard/callyard/internal/frontdoor/rest/openapi"
	"github.com/callyard/callyard/pkg/schema"
)

// maxConvertBytes is the maximum size of a body of definitions and calls in bytes. maxConvertDepth
// is its maximum nesting.
const (
	maxConvertBytes = 4 << 20
	maxConvertDepth = 200
)

// ConversionRequest is the body of POST /convert.
type ConversionRequest struct {
	From  string           `json:"from" enum:"mcp,openai,openai-responses,anthropic,gemini" doc:"The format of tools and calls." example:"openai"`
	To    string           `json:"to" enum:"mcp,openai,openai-responses,anthropic,gemini" doc:"The format to convert them to." example:"anthropic"`
	Tools openapi.Anything `json:"tools,omitzero" doc:"Tool definitions, as the tools member of a request to the provider, or for mcp the tools of tools/list. An object with this list as its member tools is accepted too."`
	Calls openapi.Anything `json:"calls,omitzero" doc:"A list of tool calls. The whole answer of the provider and its assistant message are accepted too."`
}

// Conversion is the answer to POST /convert.
type Conversion struct {
	From  string              `json:"from" doc:"The format of the request, as in its member from." example:"openai"`
	To    string              `json:"to" doc:"The format of the answer, as in the member to of the request." example:"anthropic"`
	Tools []openapi.AnyObject `json:"tools,omitzero" nullable:"false" doc:"The converted tools, as the tools member of a request to the provider, or for mcp the tools of tools/list; absent if the request has no tools."`
	Calls []openapi.AnyObject `json:"calls,omitzero" nullable:"false" doc:"The converted calls: tool_calls of a message, items of output, content blocks, parts, or for mcp requests; absent if the request has no calls."`
	Notes []ConversionNote    `json:"notes" nullable:"false" doc:"Each part of the request that is missing from the answer or differs there. Beyond 1,000, the last note gives the number of the others."`
}

// ConversionNote is one difference between the input and the output.
type ConversionNote struct {
	Kind    string `json:"kind" enum:"skipped,dropped,changed" doc:"skipped: a tool or call is missing from the answer. dropped: a part has no counterpart in the other format. changed: a name, id, schema or description differs."`
	Pointer string `json:"pointer" doc:"A JSON pointer (RFC 6901) into the request." example:"/tools/0/function/parameters/properties/count/multipleOf"`
	Message string `json:"message" doc:"The difference, in words." example:"The schema does not express it; the description does: multipleOf 5."`
}

func opConvert(d *httpapi.Document) huma.Operation {
	op := openapi.Operation(http.MethodPost, "/convert", "convert-tools", openapi.TagServers, "Convert tool definitions and tool calls",
		"Converts tool definitions and tool calls between the formats of model providers and MCP. Nothing runs, and Callyard does not need to have the tools. "+
			"Each part that cannot be converted, or that differs in the answer, has a note with a JSON pointer into the request.")
	op.RequestBody = openapi.JSONBody(d.SchemaOf(reflect.TypeFor[ConversionRequest]()), true, "What to convert: tools, calls or both.", map[string]any{
		"from": "openai", "to": "anthropic",
		"tools": []any{map[string]any{"type": "function", "function": map[string]any{"name": "echo", "strict": true, "parameters": map[string]any{"type": "object", "properties": map[string]any{"message": map[string]any{"type": "string"}}}}}},
	})
	return op
}

// convert serves POST /convert.
func (h *toolCallHandlers) convert(x *httpapi.Exchange, r *http.Request) (answer Conversion, err error) {
	members, err := x.ReadMembers(r, maxConvertBytes, maxConvertDepth, "from", "to", "tools", "calls")
	if err != nil {
		return answer, err
	}
	from, err := readFormat(members, "from", &answer.From)
	if err != nil {
		return answer, err
	}
	to, err := readFormat(members, "to", &answer.To)
	if err != nil {
		return answer, err
	}
	if members["tools"] == nil && members["calls"] == nil {
		return answer, schema.Errorf(schema.KindInvalidRequest, "There is nothing to convert; send tools, calls or both.")
	}
	made, err := format.Convert(from, to, members["tools"], members["calls"])
	if err != nil {
		return answer, err
	}
	answer.Tools, answer.Calls = objects(made.Tools), objects(made.Calls)
	answer.Notes = make([]ConversionNote, len(made.Notes))
	for i, n := range made.Notes {
		answer.Notes[i] = ConversionNote(n)
	}
	return answer, nil
}

// readFormat reads the member that names a format.
func readFormat(members map[string]json.RawMessage, name string, into *string) (format.Format, error) {
	if err := httpapi.ReadMember(members, name, true, "a string, the name of a format", into); err != nil {
		return "", err
	}
	f, err := format.Parse(*into)
	if err != nil {
		e := schema.AsError(err)
		e.Faults = []schema.Fault{{Pointer: httpapi.Pointer(name), Message: e.Detail}}
		return "", e
	}
	return f, nil
}

// objects splits a JSON list into its items. nil returns nil.
func objects(list json.RawMessage) []openapi.AnyObject {
	if list == nil {
		return nil
	}
	var items []json.RawMessage
	_ = json.Unmarshal(list, &items) // package format encoded it
	all := make([]openapi.AnyObject, len(items))
	for i := range items {
		all[i].RawMessage = items[i]
	}
	return all
}
