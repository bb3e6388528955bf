package servers

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"sync"

	"github.com/callyard/callyard/internal/catalog"
	"github.com/callyard/callyard/internal/format"
	"github.com/callyard/callyard/internal/frontdoor/rest/httpapi"
	"github.com/callyard/callyard/internal/frontdoor/rest/openapi"
	"github.com/callyard/callyard/internal/frontdoor/rest/submit"
	"github.com/callyard/callyard/internal/kit/urls"
	"github.com/callyard/callyard/pkg/schema"
)

// typedHandlers serve documents in which each tool of a server, or of a set, is a separate
// operation.
type typedHandlers struct {
	catalog *catalog.Catalog
	common  func() (*typedCommon, error) // the parts of the API document that these documents share
}

func (h *typedHandlers) register(d *httpapi.Document) {
	// The API document is complete only after all operations are registered.
	h.common = sync.OnceValues(func() (*typedCommon, error) {
		document, err := d.JSON()
		if err != nil {
			return nil, err
		}
		return newTypedCommon(document)
	})
	d.Handle(opServerDocument(), h.document)
	d.Handle(opSetDocument(), h.setDocument)
}

// documented is a tool with the name of its operation.
type documented struct {
	*schema.Tool
	operation string
}

// document serves GET /servers/{id}/openapi.json.
func (h *typedHandlers) document(x *httpapi.Exchange, r *http.Request) error {
	id := schema.ServerID(r.PathValue("id"))
	tools, err := x.Seen(h.catalog).Tools(id)
	if err != nil {
		return err
	}
	own := make([]documented, 0, len(tools))
	for i := range tools {
		if t := &tools[i]; !t.Quarantined() {
			own = append(own, documented{t.Tool, format.Name(string(t.Server), t.Name)})
		}
	}
	return h.send(x, "server", string(id), own)
}

// setDocument serves GET /sets/{name}/openapi.json.
func (h *typedHandlers) setDocument(x *httpapi.Exchange, r *http.Request) error {
	name := r.PathValue("name")
	view, err := x.Seen(h.catalog).SetView(name)
	if err != nil {
		return err
	}
	tools := make([]documented, 0, len(view.Tools))
	for i := range view.Tools {
		if t := &view.Tools[i]; !t.Quarantined() {
			tools = append(tools, documented{t.Tool.Tool, format.NameAs(t.Name, string(t.Server), t.Tool.Name)})
		}
	}
	return h.send(x, "set", name, tools)
}

func (h *typedHandlers) send(x *httpapi.Exchange, kind, name string, tools []documented) error {
	common, err := h.common()
	if err != nil {
		return err
	}
	document, err := common.of(kind, name, tools)
	if err != nil {
		return err
	}
	x.Send(http.StatusOK, []string{"application/openapi+json"}, document)
	return nil
}

// typedParameters are the parameters of a call that are included in its operation: those that change
// the form of the answer. A call also accepts the others of the API document.
var typedParameters = []string{"timeout_ms", "Prefer", "Idempotency-Key"}

// typedCommon holds the parts that all these documents share. Each is copied from the API document,
// so that they cannot differ.
type typedCommon struct {
	OpenAPI string `json:"openapi"`
	Info    struct {
		Version string          `json:"version"`
		License json.RawMessage `json:"license"`
	} `json:"info"`
	Servers  json.RawMessage `json:"servers"`
	Security json.RawMessage `json:"security"`
	Paths    map[string]struct {
		Post typedOperation `json:"post"`
	} `json:"paths"`
	Components struct {
		Schemas   map[string]json.RawMessage `json:"schemas"`
		Responses map[string]json.RawMessage `json:"responses"`
		Security  json.RawMessage            `json:"securitySchemes"`
	} `json:"components"`

	call typedOperation // the operation that calls a tool
}

// typedOperation is an operation of a document.
type typedOperation struct {
	OperationID string                     `json:"operationId"`
	Summary     string                     `json:"summary"`
	Description string                     `json:"description,omitempty"`
	Tags        []string                   `json:"tags"`
	Parameters  []json.RawMessage          `json:"parameters"`
	RequestBody any                        `json:"requestBody"`
	Responses   map[string]json.RawMessage `json:"responses"`
	Omitted     []format.Loosening         `json:"x-callyard-omitted,omitempty"`
}

// callPath is the path of the API operation that calls a tool.
const callPath = "/servers/{id}/tools/{tool}"

func newTypedCommon(document []byte) (*typedCommon, error) {
	c := &typedCommon{}
	if err := json.Unmarshal(document, c); err != nil {
		return nil, fmt.Errorf("reading the OpenAPI document of the API: %w", err)
	}
	c.call = c.Paths[callPath].Post
	var parameters []json.RawMessage
	for _, raw := range c.call.Parameters {
		var p struct{ Name string }
		if err := json.Unmarshal(raw, &p); err != nil {
			return nil, fmt.Errorf("reading the parameters of %s: %w", callPath, err)
		}
		if slices.Contains(typedParameters, p.Name) {
			parameters = append(parameters, raw)
		}
	}
	if c.call.Parameters = parameters; len(parameters) != len(typedParameters) || c.call.Responses["200"] == nil {
		return nil, fmt.Errorf("the OpenAPI document of the API does not describe %s as expected", callPath)
	}
	return c, nil
}

// typedTool holds the members of a tool definition that are used.
type typedTool struct {
	Title       string          `json:"title"`
	Description string          `json:"description"`
	Output      json.RawMessage `json:"outputSchema"`
	Annotations struct {
		Title string `json:"title"`
	} `json:"annotations"`
}

// of returns the document of a server or a set. kind is "server" or "set".
func (c *typedCommon) of(kind, name string, tools []documented) ([]byte, error) {
	paths := make(map[string]any, len(tools))
	schemas := make(map[string]json.RawMessage)
	for _, t := range tools {
		op, err := c.operation(t, schemas)
		if err != nil {
			return nil, err
		}
		paths["/servers/"+urls.Segment(string(t.Server))+"/tools/"+urls.Segment(t.Name)] = map[string]any{"post": op}
	}
	responses := make(map[string]json.RawMessage)
	c.follow(httpapi.Encode(paths), schemas, responses)
	for _, raw := range schemas {
		c.follow(raw, schemas, responses)
	}
	return httpapi.Encode(map[string]any{
		"openapi": c.OpenAPI,
		"info": map[string]any{
			"title": titles[kind] + name, "version": c.Info.Version, "license": c.Info.License,
			"description": "Each tool of the " + kind + " as an operation with its own schemas. The body is the arguments object, and the answer is the tool's result. " +
				"A tool that fails returns a result with isError true and status 200. Every operation is that of POST " + callPath + " in /openapi.json, which lists all of its parameters.",
		},
		"servers": c.Servers, "security": c.Security,
		"tags":       []any{map[string]any{"name": openapi.TagCalls, "description": "The tools of the " + kind + "."}},
		"paths":      paths,
		"components": map[string]any{"schemas": schemas, "responses": responses, "securitySchemes": c.Components.Security},
	}), nil
}

// titles are the prefixes of document titles, by kind.
var titles = map[string]string{"server": "Tools of ", "set": "Tools of the set "}

// operation returns the operation of a tool, and adds its schemas.
func (c *typedCommon) operation(t documented, schemas map[string]json.RawMessage) (*typedOperation, error) {
	var def typedTool
	_ = json.Unmarshal(t.Raw, &def) // show as much of an invalid definition as can be parsed
	op := c.call
	op.OperationID, op.Description = t.operation, def.Description
	op.Summary = t.Name
	for _, title := range []string{def.Annotations.Title, def.Title} {
		if title != "" {
			op.Summary = title
		}
	}
	op.Responses = maps.Clone(c.call.Responses)
	embed := func(raw json.RawMessage, name, pointer string) string {
		e := format.Embed(raw, name)
		for _, s := range e.Schemas {
			schemas[s.Name] = s.JSON
		}
		for _, o := range e.Omitted {
			op.Omitted = append(op.Omitted, format.Loosening{Pointer: pointer + o.Pointer, Message: o.Message})
		}
		return name
	}
	input := t.Input
	if len(input) == 0 {
		input = json.RawMessage(`{"type":"object"}`)
	}
	op.RequestBody = openapi.JSONBody(openapi.Ref(embed(input, op.OperationID+".input", "/inputSchema")), requires(input), "The arguments of the tool.", nil)
	result := submit.SchemaResult
	if def.Output != nil {
		result = op.OperationID + ".result"
		var err error
		if schemas[result], err = c.result(embed(def.Output, op.OperationID+".output", "/outputSchema")); err != nil {
			return nil, err
		}
	}
	answer, err := c.answer(result)
	op.Responses["200"] = answer
	return &op, err
}

// requires reports whether the schema requires a member, so that a call without a body is refused.
func requires(input json.RawMessage) bool {
	var s struct{ Required []string }
	return json.Unmarshal(input, &s) == nil && len(s.Required) > 0
}

// result returns the schema of results with the tool's own output schema.
func (c *typedCommon) result(output string) (json.RawMessage, error) {
	var s map[string]any
	if err := json.Unmarshal(c.Components.Schemas[submit.SchemaResult], &s); err != nil {
		return nil, fmt.Errorf("reading the schema of results: %w", err)
	}
	members, _ := s["properties"].(map[string]any)
	if members == nil {
		return nil, fmt.Errorf("the schema of results has no properties")
	}
	members["structuredContent"] = map[string]any{"$ref": openapi.Ref(output).Ref, "description": "The result as JSON. A result with isError true may have none, or another."}
	return httpapi.Encode(s), nil
}

// answer returns the response of a call that has ended.
func (c *typedCommon) answer(result string) (json.RawMessage, error) {
	var r map[string]any
	if err := json.Unmarshal(c.call.Responses["200"], &r); err != nil {
		return nil, fmt.Errorf("reading the answer of %s: %w", callPath, err)
	}
	r["content"] = map[string]any{"application/json": map[string]any{"schema": openapi.Ref(result)}}
	return httpapi.Encode(r), nil
}

// componentRef matches a reference to a component of the document.
var componentRef = regexp.MustCompile(`"#/components/(schemas|responses)/([A-Za-z0-9]+)"`)

// follow adds the components of the API document that raw refers to, directly and indirectly.
func (c *typedCommon) follow(raw []byte, schemas, responses map[string]json.RawMessage) {
	for _, m := range componentRef.FindAllSubmatch(raw, -1) {
		from, to := c.Components.Schemas, schemas
		if string(m[1]) == "responses" {
			from, to = c.Components.Responses, responses
		}
		name := string(m[2])
		if part := from[name]; part != nil && to[name] == nil {
			to[name] = bytes.TrimSpace(part)
			c.follow(part, schemas, responses)
		}
	}
}
