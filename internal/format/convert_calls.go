package format

import (
	"encoding/json"
	"strconv"
	"strings"
)

// calls converts the tool calls of the document. schemas holds the source schemas by tool name.
func (c *converter) calls(v *value, schemas map[string]*value) json.RawMessage {
	r := c.from.readCalls(v)
	ids := make(map[string]bool)
	for i := range r.parts {
		ids[r.parts[i].id.text()] = true
	}
	out := list()
	for i := range r.calls {
		call, p := &r.calls[i], &r.parts[i]
		if c.from == c.to {
			c.take(p.block)
			out.items = append(out.items, asWritten(call.Source))
			continue
		}
		arguments, ok := c.arguments(call, p, schemas)
		if !ok {
			continue
		}
		c.take(p.arguments)
		name, id := c.named(p.name), c.id(p, ids)
		out.items = append(out.items, c.to.call(id, name, arguments))
	}
	if len(r.calls) == 0 && hasContent(v) && !v.isList() {
		c.note(v, NoteSkipped, "", "It has no tool calls in the format %s.", c.from)
	}
	return out.encode(nil)
}

// arguments returns the arguments of a call with the property names of the target. If the call
// cannot be converted, it adds a note and returns false.
func (c *converter) arguments(call *Call, p *callParts, schemas map[string]*value) ([]byte, bool) {
	if call.Err != nil {
		c.note(p.block, NoteSkipped, "", "%s", call.Err.Detail)
		return nil, false
	}
	v, err := read(call.Arguments)
	if err != nil || !v.isObject() {
		c.note(p.block, NoteSkipped, "", "The arguments are not a JSON object.")
		return nil, false
	}
	schema := schemas[call.Name]
	if schema == nil || c.to == MCP {
		return call.Arguments, true
	}
	renamed := c.to.rename(schema, v, call.Arguments)
	if string(renamed) != string(call.Arguments) {
		c.note(p.arguments, NoteChanged, "", "Properties have the names of the converted schema.")
	}
	return renamed, true
}

// id returns the id of the call in the target, or "" if the target needs none.
func (c *converter) id(p *callParts, ids map[string]bool) string {
	c.take(p.id)
	if p.id != nil && p.id.kind == '0' { // a number, as JSON-RPC allows
		c.note(p.id, NoteChanged, "", "The number is a string here.")
		return string(p.id.raw)
	}
	id := p.id.text()
	if id == "" {
		if c.to == Gemini {
			return ""
		}
		for id == "" || ids[id] {
			c.made++
			id = "call_" + strconv.Itoa(c.made)
		}
		c.changed(p.block, "The call has no id; it is %s here.", quote(id))
		return id
	}
	if fit := replaceOthers(id, nameByte); c.to == Anthropic && fit != id {
		fit += digestTail(id)
		c.note(p.id, NoteChanged, "", "The id is %s here, because Anthropic accepts letters, digits, \"_\" and \"-\" only.", quote(fit))
		return fit
	}
	return id
}

// call returns a tool call as an item of the provider's list.
func (f Format) call(id, name string, arguments []byte) *value {
	switch f {
	case OpenAI:
		return fields("id", id, "type", "function").set("function", fields("name", name, "arguments", string(arguments)))
	case Responses:
		return typed("function_call", "call_id", id, "name", name, "arguments", string(arguments))
	case Anthropic:
		return typed("tool_use", "id", id, "name", name).set("input", asWritten(arguments))
	case Gemini:
		return object().set("functionCall", withID(id).with([]string{"name", name}).set("args", asWritten(arguments)))
	}
	params := fields("name", name).set("arguments", asWritten([]byte(strings.TrimSpace(string(arguments)))))
	return fields("jsonrpc", "2.0", "id", id, "method", "tools/call").set("params", params)
}
