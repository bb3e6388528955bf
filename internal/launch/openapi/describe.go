package openapi

import (
	"net/http"
	"strings"

	"github.com/callyard/callyard/internal/kit/plainjson"
	"github.com/callyard/callyard/internal/kit/truncate"
)

const (
	maxTitle = 200
	maxAbout = 8 << 10 // maximum size of a description, in bytes
	maxTool  = 1 << 20 // maximum size of a definition, in bytes
)

// definition is a Tool object of MCP. The order of its members is fixed, because its digest
// identifies it.
type definition struct {
	Name        string         `json:"name"`
	Title       string         `json:"title,omitempty"`
	Description string         `json:"description,omitempty"`
	Input       map[string]any `json:"inputSchema"`
	Output      map[string]any `json:"outputSchema,omitempty"`
	Annotations annotations    `json:"annotations"`
	Meta        map[string]any `json:"_meta"`
}

// annotations are derived from the HTTP method. Like those of any server they are hints, and the
// operator decides whether they are trusted.
type annotations struct {
	ReadOnly    bool  `json:"readOnlyHint"`
	Destructive *bool `json:"destructiveHint,omitempty"`
	Idempotent  *bool `json:"idempotentHint,omitempty"`
}

func hints(method string) annotations {
	ok := true
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return annotations{ReadOnly: true}
	case http.MethodDelete:
		return annotations{Destructive: &ok, Idempotent: &ok}
	case http.MethodPut:
		return annotations{Idempotent: &ok}
	}
	return annotations{}
}

// describe creates the definition of the operation's tool.
func (b *builder) describe(c candidate) string {
	input, loose := b.inputSchema(c.operation)
	output, wrap := b.outputSchema(c)
	c.wrap = wrap
	about := c.at.Summary
	if d := strings.TrimSpace(c.at.Description); d != "" && d != strings.TrimSpace(about) {
		about = strings.TrimSpace(about + "\n\n" + d)
	}
	if about == "" {
		about = c.method + " " + c.template
	}
	about = truncate.Text(about, maxAbout)
	if c.at.Deprecated {
		about += "\n\nThis operation is deprecated."
	}
	if loose {
		about += "\n\nParts of the input schema were too large and are omitted."
		b.note("The input schema of %s %s is too large or has unresolved references; parts of it are omitted.", c.method, c.template)
	}
	d := definition{
		Name: c.name, Title: truncate.Text(c.at.Summary, maxTitle), Description: about, Input: input, Output: output, Annotations: hints(c.method),
		// The destination of the request is part of what people approve.
		Meta: map[string]any{"callyard/http": map[string]any{"method": c.method, "origin": c.base.Scheme + "://" + c.base.Host, "path": strings.TrimRight(c.base.Path, "/") + c.template}},
	}
	for {
		text, err := plainjson.Marshal(d)
		switch {
		case err != nil:
			return "its definition cannot be encoded"
		case len(text) <= maxTool:
			c.tool = text
			return ""
		case d.Output == nil:
			return "its definition is too large"
		}
		d.Output, c.wrap = nil, false
	}
}

// inputSchema returns an object schema with the parameters and the body.
func (b *builder) inputSchema(op *operation) (schema map[string]any, loose bool) {
	s := newSchemas(b.doc, true)
	properties, required := make(map[string]any), []string{}
	add := func(key, about string, must bool, value any) {
		if m, ok := value.(map[string]any); ok && about != "" && m["description"] == nil {
			m["description"] = truncate.Text(about, maxAbout)
		}
		properties[key] = value
		if must {
			required = append(required, key)
		}
	}
	for _, p := range op.params {
		add(p.key, p.about, p.required, s.of(p.schema))
	}
	if op.body != nil {
		add(op.body.key, op.body.about, op.body.required, op.body.describe(s))
	}
	schema = map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		schema["required"] = required
	}
	if len(s.defs) > 0 {
		schema["$defs"] = s.defs
	}
	return schema, s.cut
}

// outputSchema returns the output schema of an operation whose successful responses are always the
// same kind of JSON. wrap means that the result is {"result": …}, because an output schema must
// describe an object.
func (b *builder) outputSchema(c candidate) (schema map[string]any, wrap bool) {
	if c.at.Responses == nil || c.method == http.MethodHead { // a response to HEAD has no body
		return nil, false
	}
	var plain any
	for status, ref := range c.at.Responses.Map() {
		if !strings.HasPrefix(status, "2") {
			continue
		}
		if plain != nil || ref == nil || ref.Value == nil || len(ref.Value.Content) != 1 {
			return nil, false
		}
		for key, media := range ref.Value.Content {
			if !isJSON(cleanMedia(key)) || media == nil {
				return nil, false
			}
			if plain = b.doc.at(c.raw, "responses", status, "content", key, "schema"); plain == nil {
				return nil, false
			}
		}
	}
	if plain == nil {
		return nil, false
	}
	s := newSchemas(b.doc, false)
	if s.isObject(plain, 0) {
		if m, ok := plain.(map[string]any); ok && len(m) == 1 && m["$ref"] != nil {
			plain = s.resolve(plain)
		}
		converted, _ := s.convert(plain, 0).(map[string]any)
		schema = converted
		schema["type"] = "object"
	} else {
		wrap = true
		schema = map[string]any{"type": "object", "properties": map[string]any{"result": s.convert(plain, 0)}, "required": []string{"result"}}
	}
	if s.cut {
		return nil, false // an unknown type promises nothing
	}
	if len(s.defs) > 0 {
		schema["$defs"] = s.defs
	}
	return schema, wrap
}
