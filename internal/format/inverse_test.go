package format

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/callyard/callyard/pkg/schema"
)

// This file has the inverse of each conversion, for round-trip tests: [Format.Block] of
// [Format.Calls], [Format.Replies] of [Format.Messages], [Format.Definitions] of [Format.Wrap]. The
// product needs none of them.

// Block returns a model's message with these calls in the provider's format: the inverse of
// [Format.Calls]. Arguments must be JSON.
func (f Format) Block(calls []Call) json.RawMessage {
	items := list()
	for _, c := range calls {
		arguments, err := read(c.Arguments)
		if err != nil {
			arguments = object()
		}
		var item *value
		switch f {
		case OpenAI:
			item = fields("id", c.ID, "type", "function").set("function", fields("name", c.Name, "arguments", string(c.Arguments)))
		case Responses:
			item = typed("function_call", "call_id", c.ID, "name", c.Name, "arguments", string(c.Arguments))
		case Anthropic:
			item = typed("tool_use", "id", c.ID, "name", c.Name).set("input", arguments)
		case Gemini:
			item = object().set("functionCall", withID(c.ID).set("name", str(c.Name)).set("args", arguments))
		default:
			params := fields("name", c.Name).set("arguments", arguments)
			item = fields("jsonrpc", "2.0", "id", c.ID, "method", schema.MethodCallTool).set("params", params)
		}
		items.items = append(items.items, item)
	}
	switch f {
	case OpenAI:
		return fields("role", "assistant").set("content", null()).set("tool_calls", items).encode(nil)
	case Anthropic:
		return fields("role", "assistant").set("content", items).encode(nil)
	case Gemini:
		return fields("role", "model").set("parts", items).encode(nil)
	}
	return items.encode(nil)
}

// Reply is one tool message of a provider as an MCP result.
type Reply struct {
	ID     string // of the answered call, "" if there is none
	Name   string // of the tool, if the message has it
	Result json.RawMessage
}

// Replies returns the tool messages of a provider as MCP results: the inverse of
// [Format.Messages], for messages with text. It accepts a list of messages or one message, and
// skips those that are not tool messages.
func (f Format) Replies(raw []byte) ([]Reply, error) {
	v, err := read(raw)
	if err != nil {
		return nil, unreadable("The tool messages cannot be read: %w.", err)
	}
	var all []Reply
	add := func(id, name string, content *value, failed bool) {
		blocks, structured := list(), (*value)(nil)
		text := func(t string) { blocks.items = append(blocks.items, typed("text", "text", t)) }
		switch {
		case content.isString():
			text(content.text())
		case content.isList():
			for _, b := range content.items {
				if t := b.get("text"); t.isString() {
					text(t.text())
				} else {
					text(string(b.source()))
				}
			}
		case content != nil:
			text(string(content.source()))
			structured = content
		}
		result := object().set("content", blocks)
		if structured.isObject() {
			result.set("structuredContent", structured)
		}
		if failed {
			result.set("isError", ok())
		}
		all = append(all, Reply{id, name, result.encode(nil)})
	}
	each(v, func(m *value) {
		switch f {
		case OpenAI:
			if r := m.get("role").text(); r == "tool" || r == "function" {
				add(m.get("tool_call_id").text(), m.get("name").text(), m.get("content"), false)
			}
		case Responses:
			if m.get("type").text() == "function_call_output" {
				add(m.get("call_id").text(), "", m.get("output"), false)
			}
		case Anthropic:
			blocks := m
			if inner := m.get("content"); inner.isList() && m.get("role") != nil {
				blocks = inner
			}
			each(blocks, func(b *value) {
				if b.get("type").text() == "tool_result" {
					add(b.get("tool_use_id").text(), "", b.get("content"), b.get("is_error").isTrue())
				}
			})
		case Gemini:
			parts := m
			if inner := m.get("parts"); inner.isList() {
				parts = inner
			}
			each(parts, func(p *value) {
				if r := p.get("functionResponse"); r.isObject() {
					response := r.get("response")
					out, failed := response.get("output"), false
					if e := response.get("error"); out == nil && e != nil {
						out, failed = e, true
					}
					if out == nil {
						out = response
					}
					add(r.get("id").text(), r.get("name").text(), out, failed)
				}
			})
		case MCP:
			if r := m.get("result"); r.isObject() {
				m, all = r, append(all, Reply{ID: string(m.get("id").source())})
			} else {
				all = append(all, Reply{})
			}
			all[len(all)-1].Result = m.source()
		}
	})
	return all, nil
}

// Definitions returns a provider's tools as MCP definitions: name, description and inputSchema. It
// accepts a list of tools, one tool, or an object with a member tools. Tools that are not functions
// are omitted. The error is of KindInvalidRequest.
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
			def := object().set("name", name)
			if d := t.get("description"); d.isString() {
				def.set("description", d)
			}
			def.set("inputSchema", f.input(t))
			all = append(all, def.encode(nil))
		}
	}
	return all, nil
}

// functions returns the tools in one item of a provider's list.
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
			return nil // a tool of the provider
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

// input returns the input schema of a provider's tool as JSON Schema.
func (f Format) input(t *value) *value {
	for _, name := range []string{"inputSchema", "input_schema", "parametersJsonSchema", "parameters_json_schema"} {
		if s := t.get(name); s.isObject() {
			return s
		}
	}
	s := t.get("parameters")
	if !s.isObject() {
		return typed("object")
	}
	if f == Gemini {
		s = s.clone()
		everySchema(s, 0, fromGemini)
	}
	return s
}

// fromGemini converts a Gemini schema, without its subschemas, to JSON Schema.
func fromGemini(s *value) {
	may := s.get("nullable").isTrue()
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
}
