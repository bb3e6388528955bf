package rest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"sort"
	"strconv"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/callyard/callyard/pkg/schema"
)

// AnyObject is a JSON object that somebody else made; it is passed on.
type AnyObject struct{ json.RawMessage }

// Schema describes it; see [huma.SchemaProvider].
func (AnyObject) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true}
}

// AnyValue is a JSON value that somebody else made; it is passed on.
type AnyValue struct{ json.RawMessage }

// Schema describes it; see [huma.SchemaProvider].
func (AnyValue) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Description: "Any JSON value, as the MCP server sent it."}
}

// openHuma makes the Huma API on the mux, with nothing in it but what is common
// to all operations.
func (a *API) openHuma() {
	config := huma.DefaultConfig("Callyard", a.o.Version)
	config.Info.Description = documentText
	config.Info.License = &huma.License{Name: "Apache 2.0", URL: "https://www.apache.org/licenses/LICENSE-2.0"}
	config.Servers = []*huma.Server{{URL: "/", Description: "This front door"}}
	config.Tags = []*huma.Tag{
		{Name: tagCalls, Description: "Run tools and wait for their results."},
		{Name: tagServers, Description: "The MCP servers of the fleet and what they offer."},
		{Name: tagFleet, Description: "Workers, events, health and metrics."},
	}
	config.Security = []map[string][]string{{"bearer": {}}, {"apiKey": {}}}
	config.Components.SecuritySchemes = map[string]*huma.SecurityScheme{
		"bearer": {Type: "http", Scheme: "bearer", Description: "An API key. A front door without configured keys needs none and serves loopback only."},
		"apiKey": {Type: "apiKey", In: "header", Name: "X-API-Key", Description: "The same API key, in a header of its own."},
	}
	// The document, the page and the links to schemas are ours: Huma's load from
	// a public host, and its hook puts a $schema member into every body.
	config.OpenAPIPath, config.DocsPath, config.SchemasPath = "", "", ""
	config.CreateHooks = nil
	config.RejectUnknownQueryParameters = true
	// Answers may gain members; what takes members refuses unknown ones itself.
	config.AllowAdditionalPropertiesByDefault = true
	config.Transformers = []huma.Transformer{a.fromHuma}
	config.Components.Schemas = huma.NewMapRegistry("#/components/schemas/", shapeName)
	a.huma = humago.New(a.mux, config)
	a.huma.UseMiddleware(func(ctx huma.Context, next func(huma.Context)) { next(withOurStatus{ctx}) }, a.checkParameters)
	a.documentProblems()
	a.documentBodies()
}

// get registers an operation without a body whose answer is built from ours.
func get[I, O any](a *API, op huma.Operation, h func(context.Context, *I) (*O, error)) {
	huma.Register(a.huma, op, func(ctx context.Context, in *I) (*O, error) {
		out, err := h(ctx, in)
		if err != nil {
			return nil, failure{a.problem(err)}
		}
		return out, nil
	})
}

// raw registers an operation that reads and writes bytes itself.
func (a *API) raw(op huma.Operation, pattern string, h func(*exchange, *http.Request) error) {
	a.huma.OpenAPI().AddOperation(&op)
	h = a.checked(&op, h)
	a.mux.HandleFunc(op.Method+" "+pattern, func(w http.ResponseWriter, r *http.Request) { a.serve(w.(*exchange), r, h) })
}

// documentProblems puts one response for each status of the table into the
// document; operations refer to them.
func (a *API) documentProblems() {
	registry := a.huma.OpenAPI().Components.Schemas
	problem := registry.Schema(reflect.TypeFor[Problem](), true, "")
	responses := map[string]*huma.Response{
		"Problem": {Description: "Any other problem.", Content: map[string]*huma.MediaType{"application/problem+json": {Schema: problem}}},
	}
	byStatus := make(map[int][]*kind)
	for _, k := range a.kinds {
		byStatus[k.Status] = append(byStatus[k.Status], k)
	}
	for status, kinds := range byStatus {
		sort.Slice(kinds, func(i, j int) bool { return kinds[i].Kind < kinds[j].Kind })
		r := &huma.Response{Content: map[string]*huma.MediaType{"application/problem+json": {Schema: problem, Examples: make(map[string]*huma.Example)}}}
		for i, k := range kinds {
			if i > 0 {
				r.Description += " Or: "
			}
			r.Description += k.Meaning
			r.Content["application/problem+json"].Examples[string(k.Kind)] = &huma.Example{
				Summary: k.Title,
				Value: map[string]any{
					"type": "/problems/" + string(k.Kind), "title": k.Title, "status": k.Status, "detail": k.Meaning, "error": k.Meaning, "retryable": false,
				},
			}
		}
		switch status {
		case http.StatusTooManyRequests, http.StatusServiceUnavailable:
			r.Headers = map[string]*huma.Param{"Retry-After": header("Seconds to wait, at least 1.", huma.TypeInteger, 1)}
		case http.StatusUnauthorized:
			r.Headers = map[string]*huma.Param{"WWW-Authenticate": header("How to send a credential.", huma.TypeString, `Bearer realm="callyard"`)}
		}
		responses["Problem"+strconv.Itoa(status)] = r
	}
	a.huma.OpenAPI().Components.Responses = responses
}

// problems are the responses of an operation that refuses with these statuses.
func problems(statuses ...int) map[string]*huma.Response {
	responses := map[string]*huma.Response{"default": {Ref: "#/components/responses/Problem"}}
	for _, status := range statuses {
		responses[strconv.Itoa(status)] = &huma.Response{Ref: "#/components/responses/Problem" + strconv.Itoa(status)}
	}
	return responses
}

func header(text, kind string, example any) *huma.Param {
	return &huma.Param{Description: text, Schema: &huma.Schema{Type: kind}, Example: example}
}

// finishDocument fixes the document as it will be served.
func (a *API) finishDocument() error {
	document := a.huma.OpenAPI()
	for _, unused := range []string{"ErrorModel", "ErrorDetail"} {
		delete(document.Components.Schemas.Map(), unused) // Huma's own, which never leave
	}
	a.finishShapes()
	used := make(map[string]bool)
	spec, err := json.Marshal(document)
	if err != nil {
		return fmt.Errorf("encoding the OpenAPI document: %w", err)
	}
	for name := range document.Components.Responses {
		used[name] = containsText(spec, `"#/components/responses/`+name+`"`)
	}
	for name, is := range used {
		if !is {
			delete(document.Components.Responses, name)
		}
	}
	if a.spec, err = json.Marshal(document); err != nil {
		return fmt.Errorf("encoding the OpenAPI document: %w", err)
	}
	if a.yaml, err = document.YAML(); err != nil {
		return fmt.Errorf("encoding the OpenAPI document as YAML: %w", err)
	}
	return nil
}

// Document returns the OpenAPI 3.1 document as JSON, as /openapi.json serves it.
func (a *API) Document() []byte { return a.spec }

const documentText = `Callyard runs the tools of MCP servers for you: a call goes to one of the workers that hold the server, and comes back with what the tool answered.

The first call:

` + "```" + `sh
curl --json '{"message":"hello"}' http://127.0.0.1:8080/servers/everything/tools/echo
` + "```" + `

Arguments reach the tool, and results reach you, as the bytes that were sent. A tool that fails says so in its result (` + "`isError: true`" + `, status 200);
every other failure is an RFC 9457 problem document with a stable ` + "`type`" + `, and ` + "`retryable`" + ` says whether the same request may be sent again without a second side effect.`

// byteSize is for descriptions.
func byteSize(n int) string {
	if n >= 1<<20 && n%(1<<20) == 0 {
		return strconv.Itoa(n>>20) + " MiB"
	}
	if n >= 1<<10 && n%(1<<10) == 0 {
		return strconv.Itoa(n>>10) + " KiB"
	}
	return strconv.Itoa(n) + " bytes"
}

func sortFaults(faults []schema.Fault) {
	sort.Slice(faults, func(i, j int) bool { return faults[i].Pointer < faults[j].Pointer })
}
