package batches

import (
	"fmt"
	"reflect"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/callyard/callyard/internal/frontdoor/rest/httpapi"
	"github.com/callyard/callyard/internal/frontdoor/rest/openapi"
	"github.com/callyard/callyard/internal/frontdoor/rest/submit"
)

// describe adds the schemas of batches to the document whose bodies are parsed member by member.
func (b *handlers) describe(d *httpapi.Document) {
	all := d.Schemas()
	d.SchemaOf(reflect.TypeFor[BatchResult]())
	all[schemaLine].Description = "One call of a batch that has ended."
	all[schemaLine].Properties["result"] = &huma.Schema{Description: "The result of the tool, if there is one."}
	all[schemaBatchItem] = &huma.Schema{
		Type: huma.TypeObject, AdditionalProperties: false, Required: []string{"server", "tool"}, Description: "One call of a batch.",
		Properties: map[string]*huma.Schema{
			"custom_id": {Type: huma.TypeString, MaxLength: new(maxCustomID), Description: "The caller's own id for the call, unique in the batch."}, "server": openapi.Text("The id of the server."), "tool": openapi.Text("The name of the tool."),
			"arguments":  openapi.Object("The arguments; the default is an empty object."),
			"timeout_ms": b.runner.TimeoutSchema("The timeout of the call, in milliseconds. The default is the timeout of the server."),
		},
	}
	all[schemaBatchBody] = &huma.Schema{
		Type: huma.TypeObject, AdditionalProperties: false, Description: "A batch in one document.",
		Properties: map[string]*huma.Schema{
			"calls":        {Type: huma.TypeArray, Items: openapi.Ref(schemaBatchItem), Description: "The calls; optional if open is true."},
			"priority":     {Type: huma.TypeInteger, Minimum: new(float64(minPriority)), Maximum: new(float64(maxPriority)), Description: "Each step of 5 doubles the batch's share of the capacity, or halves it."},
			"expires_in":   openapi.Described(b.expiresSchema(), "The number of seconds within which calls must be sent to a worker; the default is 86400 (24 hours)."),
			"callback_url": openapi.Text("The URL that is notified when the batch ends."),
			"labels": {
				Type: huma.TypeObject, MaxProperties: new(maxLabels), AdditionalProperties: &huma.Schema{Type: huma.TypeString, MaxLength: new(maxLabelValue)},
				Description: fmt.Sprintf("The caller's own labels; a name has at most %d bytes.", maxLabelName),
			},
			"open":   {Type: huma.TypeBoolean, Description: "More calls follow with POST /batches/{id}/calls."},
			"stream": {Type: huma.TypeBoolean, Description: "Stream the results in the answer as the calls end."},
		},
	}
	d.AtLast(func(all map[string]*huma.Schema) {
		openapi.ForbidUnknownMembers(all, "ConfirmCalls")
		submit.DescribeCall(all, schemaLine)
	})
}

// expiresSchema returns the schema of the time limit of a batch, in seconds.
func (b *handlers) expiresSchema() *huma.Schema {
	return openapi.Integers(1, float64(b.batches.MaxLife()/time.Second))
}
