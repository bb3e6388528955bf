package rest

import (
	"fmt"
	"reflect"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/callyard/callyard/internal/calls"
)

// Names of schemas that have no Go type here, or another name in the document.
const (
	schemaCallState = "CallState"
	schemaBatchItem = "BatchCall"
	schemaBatchBody = "BatchRequest"
	schemaLine      = "BatchResult"
	schemaBlock     = "ContentBlock"
)

// shapeNames are the names by which callers know types whose own names say too
// little outside their packages. They become the names of types in generated
// clients.
var shapeNames = map[reflect.Type]string{
	reflect.TypeFor[CallState]():       "Call",
	reflect.TypeFor[calls.Page]():      "CallList",
	reflect.TypeFor[calls.View]():      "CallRecord",
	reflect.TypeFor[calls.ViewError](): "CallRecordError",
	reflect.TypeFor[resultHead]():      schemaLine,
	reflect.TypeFor[calls.Allow]():     "Allowance",
	reflect.TypeFor[calls.Pattern]():   "AllowancePattern",
	reflect.TypeFor[calls.Value]():     "AllowanceValue",
}

// shapeName names the schema of a type.
func shapeName(t reflect.Type, hint string) string {
	of := t
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	if name, ok := shapeNames[of]; ok {
		return name
	}
	return huma.DefaultSchemaNamer(t, hint)
}

// finishShapes says in the schemas what the Go types cannot: which raw JSON has a
// shape, and which words several of them share.
func (a *API) finishShapes() {
	registry := a.huma.OpenAPI().Components.Schemas
	all := registry.Map()
	for name, s := range all {
		if registry.TypeFromRef("#/components/schemas/"+name) != nil {
			plain(s)
		}
	}
	all[schemaCallState] = described(callStateWords(), "Where a call is. It goes forward only, and the last six are ends. unknown: the call left, and nobody can tell what became of it.")
	for _, body := range []string{"ConfirmRequest", "ConfirmCalls", "SettleRequest", schemaSwitch} {
		if s := all[body]; s != nil {
			s.AdditionalProperties = false
		}
	}
	set := func(shape, member string, s *huma.Schema) {
		if shape := all[shape]; shape != nil && shape.Properties[member] != nil {
			s.Description = shape.Properties[member].Description
			shape.Properties[member] = s
		}
	}
	for _, shape := range []string{"Call", "CallRecord", schemaLine} {
		set(shape, "state", ref(schemaCallState))
	}
	defer a.finishAnswers()
	for _, shape := range []string{"Call", schemaLine} {
		set(shape, "result", ref(schemaResult))
		set(shape, "problem", ref("Problem"))
	}
}

// callStateWords are the states of a call.
func callStateWords() *huma.Schema {
	return words("held", "queued", "running", "succeeded", "failed", "denied", "expired", "canceled", "unknown")
}

func described(s *huma.Schema, description string) *huma.Schema {
	s.Description = description
	return s
}

// expiresSchema is how many seconds a batch may take.
func (a *API) expiresSchema() *huma.Schema {
	return integers(1, float64(a.o.Batches.MaxLife()/time.Second))
}

func idempotencySchema() *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Pattern: fmt.Sprintf("^[!-~]{1,%d}$", maxIdempotencyKey)}
}

// plain makes the schema of a Go type say what is sent and no more: a list that
// is not there is left out and never null, and that answers may gain members is
// what JSON Schema means where it is silent. Generated types are simpler for it.
func plain(s *huma.Schema) {
	if s == nil {
		return
	}
	if s.Type == huma.TypeArray {
		s.Nullable = false
	}
	if open, is := s.AdditionalProperties.(bool); is && open && len(s.Properties) > 0 {
		s.AdditionalProperties = nil
	}
	plain(s.Items)
	for _, member := range s.Properties {
		plain(member)
	}
}

// linesOf is a text whose lines, or whose events, each hold JSON of the
// shape.
func linesOf(shape *huma.Schema, description string) *huma.Schema {
	return &huma.Schema{
		Type: huma.TypeString, Description: description,
		Extensions: map[string]any{"contentMediaType": "application/json", "contentSchema": shape},
	}
}

// documentBatchBodies puts the shapes of batches into the document, which are read
// member by member.
func (a *API) documentBatchBodies() {
	all := a.huma.OpenAPI().Components.Schemas.Map()
	a.schemaOf(reflect.TypeFor[resultHead]())
	all[schemaLine].Description = "One call of a batch that has ended."
	all[schemaLine].Properties["result"] = &huma.Schema{Description: "The result of the tool; absent where there is none."}
	all[schemaBatchItem] = &huma.Schema{
		Type: huma.TypeObject, AdditionalProperties: false, Required: []string{"server", "tool"}, Description: "One call of a batch.",
		Properties: map[string]*huma.Schema{
			"custom_id": {Type: huma.TypeString, MaxLength: ptr(maxCustomID), Description: "The caller's own name of the call, unique in the batch."}, "server": text("The id of the server."), "tool": text("The name of the tool."),
			"arguments":  anyArguments("The arguments; without them the tool gets an empty object."),
			"timeout_ms": a.timeoutSchema("How long the call may take."),
		},
	}
	all[schemaBatchBody] = &huma.Schema{
		Type: huma.TypeObject, AdditionalProperties: false, Description: "A batch in one document.",
		Properties: map[string]*huma.Schema{
			"calls":        {Type: huma.TypeArray, Items: ref(schemaBatchItem), Description: "The calls; may be left out where open is true."},
			"priority":     {Type: huma.TypeInteger, Minimum: ptr(float64(minPriority)), Maximum: ptr(float64(maxPriority)), Description: "Each 5 doubles or halves the share of the batch."},
			"expires_in":   described(a.expiresSchema(), "Seconds in which calls may leave; 24 h without it."),
			"callback_url": text("An address that is told of the end."),
			"labels": {
				Type: huma.TypeObject, MaxProperties: ptr(maxLabels), AdditionalProperties: &huma.Schema{Type: huma.TypeString, MaxLength: ptr(maxLabelValue)},
				Description: fmt.Sprintf("Words of the caller's own; a name takes at most %d bytes.", maxLabelName),
			},
			"open":   {Type: huma.TypeBoolean, Description: "More calls follow with POST /batches/{id}/calls."},
			"stream": {Type: huma.TypeBoolean, Description: "Answer with the results while they come."},
		},
	}
}

// documentResult puts the shape of results into the document.
func (a *API) documentResult() {
	all := a.huma.OpenAPI().Components.Schemas.Map()
	anything := &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true}
	all[schemaBlock] = openObject("A part of a result, as the MCP server sent it; which members it has depends on its type, and there may be others.", map[string]*huma.Schema{
		"type": text("text, image, audio, resource, resource_link, or what the server calls it."), "text": text("The text, of type text."),
		"data": text("Base64, of types image and audio."), "mimeType": text("What data or the resource is."),
		"resource": anything, "uri": text("Where the resource is, of type resource_link."), "name": text("The name of the resource."),
	})
	result := openObject("The result of the tool, as the MCP server sent it. A tool that failed has isError true.", map[string]*huma.Schema{
		"content":           {Type: huma.TypeArray, Items: ref(schemaBlock), Description: "Content blocks; each has a type."},
		"structuredContent": {Description: "The result as JSON, where the tool has an output schema."},
		"isError":           {Type: huma.TypeBoolean, Description: "True when the tool failed."},
		"_meta":             anything,
		"execution_environment": openObject("Where the tool ran, in the words of the fabric and not of the server; only where it was kept apart.", map[string]*huma.Schema{
			"risk_level": {Type: huma.TypeInteger}, "risk_description": text("The risk in words."), "docker": {Type: huma.TypeBoolean}, "docker_image": text("The image, as the operator named it."),
			"isolation": text("What kept the tool apart: container, or bubblewrap, which is weaker."), "runtime": text("The runtime of the container, such as runc or runsc."),
		}),
	})
	plain(result)
	all[schemaResult] = result
}

// anyArguments is the object of a tool's arguments.
func anyArguments(description string) *huma.Schema {
	return &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true, Description: description}
}

func (a *API) timeoutSchema(description string) *huma.Schema {
	return &huma.Schema{Type: huma.TypeInteger, Minimum: ptr(1.0), Maximum: ptr(float64(a.limits.MaxTimeout.Milliseconds())), Description: description}
}
