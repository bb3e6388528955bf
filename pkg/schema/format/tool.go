package format

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/callyard/callyard/pkg/schema"
)

// Tool is a tool in the shape of a provider.
type Tool struct {
	// Name is what the provider calls it; see [Name].
	Name string
	// JSON is the tool as the provider takes it: an item of its list of tools, for
	// Gemini of functionDeclarations.
	JSON json.RawMessage
	// Strict says that it is in strict mode.
	Strict bool
	// Loosened lists what the provider's form does not express.
	Loosened []Loosening
	// Tokens is what it costs, estimated; see [Tokens].
	Tokens int
}

// Tool returns the tool as the provider takes it, under the given name. strict asks
// for strict mode; see [Format.Schema]. For MCP it is the definition with another
// name.
func (f Format) Tool(name string, t *schema.Tool, strict bool) Tool {
	if f == MCP {
		raw := withName(t.Raw, name)
		return Tool{Name: name, JSON: raw, Tokens: Tokens(raw)}
	}
	shape := f.Schema(t.Input, strict)
	out := Tool{Name: name, Strict: shape.Strict, Loosened: shape.Loosened}
	description := f.description(t.Raw, &out)
	if shape.NotStrict != "" { // nothing that a model has to know
		out.Loosened = append(slices.Clip(out.Loosened), Loosening{"", "strict mode is off for this tool: " + shape.NotStrict})
	}
	b := []byte{'{'}
	switch f {
	case OpenAI:
		b = append(b, `"type":"function","function":{`...)
	case Responses:
		b = append(b, `"type":"function",`...)
	}
	b = append(append(b, `"name":`...), quote(name)...)
	if description != "" {
		b = append(append(b, `,"description":`...), quote(description)...)
	}
	if len(shape.Schema) > 0 {
		key := map[Format]string{OpenAI: "parameters", Responses: "parameters", Anthropic: "input_schema", Gemini: "parameters"}[f]
		b = append(append(append(b, `,"`...), key...), `":`...)
		b = append(b, shape.Schema...)
	}
	switch {
	case f == OpenAI && shape.Strict:
		b = append(b, `,"strict":true`...)
	case f == Responses && shape.Strict:
		b = append(b, `,"strict":true`...)
	case f == Responses: // there it is the default
		b = append(b, `,"strict":false`...)
	}
	if f == OpenAI {
		b = append(b, '}')
	}
	out.JSON = append(b, '}')
	out.Tokens = Tokens(out.JSON)
	return out
}

// description is what the provider is told of the tool, with what its schema does
// not express.
func (f Format) description(raw []byte, t *Tool) string {
	var def struct {
		Title, Description string
		Annotations        struct{ Title string }
	}
	_ = json.Unmarshal(raw, &def) // an odd definition is shown as far as it can be read
	description := def.Description
	for _, other := range []string{def.Title, def.Annotations.Title} {
		if description == "" {
			description = other
		}
	}
	most := f.descriptionMost()
	also := told(t.Loosened)
	whole := join(description, also)
	if most == 0 || utf8.RuneCountInString(whole) <= most {
		return whole
	}
	// What is cut off is not a schema's, so it is listed and not told: there is no
	// room for that.
	t.Loosened = append(slices.Clip(t.Loosened), Loosening{"", "the description is cut at the " + itoa(most) + " characters that the provider takes"})
	room := most - utf8.RuneCountInString(also) - len("…\n\n")
	return join(string([]rune(description)[:max(room, 0)])+"…", also)
}

func join(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "\n\n" + b
}

// withName is the definition with another name, every other byte as it was.
func withName(raw []byte, name string) json.RawMessage {
	v, err := read(raw)
	if err != nil || !v.isObject() {
		return raw
	}
	for i := len(v.members) - 1; i >= 0; i-- {
		if m := v.members[i]; m.name == "name" {
			out := append(slices.Clone(raw[:m.value.start]), quote(name)...)
			return append(out, raw[m.value.end:]...)
		}
	}
	return raw
}

// Wrap joins tools to what the provider takes as the member tools of a request.
func (f Format) Wrap(tools []Tool) json.RawMessage {
	size := 32
	for i := range tools {
		size += len(tools[i].JSON) + 1
	}
	b := append(make([]byte, 0, size), '[')
	if f == Gemini {
		if len(tools) == 0 {
			return append(b, ']')
		}
		b = append(b, `{"functionDeclarations":[`...)
	}
	for i := range tools {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, tools[i].JSON...)
	}
	if f == Gemini {
		b = append(b, "]}"...)
	}
	return append(b, ']')
}

// Definitions returns tools of the provider's as MCP definitions: name, description
// and inputSchema. It takes a list of tools, one tool, or an object with a member
// tools. Tools that are not functions are left out. The error is of
// KindInvalidRequest.
func (f Format) Definitions(raw []byte) ([]json.RawMessage, error) {
	v, err := read(raw)
	if err != nil {
		return nil, unreadable("The tools cannot be read: %w.", err)
	}
	if tools := v.get("tools"); tools.isList() {
		v = tools
	}
	if v.isObject() {
		v = list(v)
	}
	var all []json.RawMessage
	for _, item := range v.items {
		for _, t := range f.functions(item) {
			name := t.get("name")
			if !name.isString() {
				return nil, unreadable("A tool has no name.")
			}
			def := object()
			def.set("name", name)
			if d := t.get("description"); d.isString() {
				def.set("description", d)
			}
			def.set("inputSchema", f.input(t))
			all = append(all, def.encode(nil))
		}
	}
	return all, nil
}

// functions are the tools in one item of a provider's list.
func (f Format) functions(item *value) []*value {
	switch f {
	case OpenAI:
		if inner := item.get("function"); inner.isObject() {
			return []*value{inner}
		}
		return nil
	case Responses:
		if t := item.get("type"); t != nil && t.text() != "function" {
			return nil
		}
	case Anthropic:
		if item.get("input_schema") == nil {
			return nil // one of the provider's own
		}
	case Gemini:
		for _, name := range []string{"functionDeclarations", "function_declarations"} {
			if many := item.get(name); many.isList() {
				return many.items
			}
		}
		if item.get("name") == nil {
			return nil
		}
	}
	return []*value{item}
}

// input is the input schema of a provider's tool as JSON Schema.
func (f Format) input(t *value) *value {
	for _, name := range []string{"inputSchema", "input_schema", "parametersJsonSchema", "parameters_json_schema"} {
		if s := t.get(name); s.isObject() {
			return s
		}
	}
	s := t.get("parameters")
	if !s.isObject() {
		s = object()
		s.set("type", str("object"))
		return s
	}
	if f == Gemini {
		s = s.clone()
		fromGemini(s, 0)
	}
	return s
}

// fromGemini puts a schema of Gemini's into JSON Schema.
func fromGemini(s *value, depth int) {
	if depth > maxDepth {
		return
	}
	may := s.get("nullable") != nil && s.get("nullable").kind == 't'
	s.drop("nullable")
	s.drop("propertyOrdering")
	if t := s.get("type"); t.isString() {
		word := strings.ToLower(t.text())
		s.set("type", str(word))
		if may && word != "null" {
			s.set("type", list(str(word), str("null")))
			if e := s.get("enum"); e.isList() {
				s.set("enum", list(append(slices.Clone(e.items), null())...))
			}
		}
	}
	if s.get("format").text() == "enum" {
		s.drop("format")
	}
	if e := s.drop("example"); e != nil {
		s.set("examples", list(e))
	}
	eachSchema(s, "", func(sub *value, _ string) {
		if sub.isObject() {
			fromGemini(sub, depth+1)
		}
	})
}
