package format

import "encoding/json"

// Reply is one tool message of a provider as an MCP result.
type Reply struct {
	ID     string // of the call it answers, "" where it has none
	Name   string // of the tool, where the message says it
	Result json.RawMessage
}

// Replies returns the tool messages of a provider as MCP results: the other
// direction of [Format.Messages], for messages with text. It takes a list of
// messages or one; what is no tool message is passed over.
func (f Format) Replies(raw []byte) ([]Reply, error) {
	v, err := read(raw)
	if err != nil {
		return nil, unreadable("The tool messages cannot be read: %w.", err)
	}
	var all []Reply
	add := func(id, name string, content *value, failed bool) {
		result, blocks := object(), list()
		switch {
		case content.isString():
			blocks.items = append(blocks.items, typed("text", "text", content.text()))
		case content.isList():
			for _, b := range content.items {
				if t := b.get("text"); t.isString() {
					blocks.items = append(blocks.items, typed("text", "text", t.text()))
				} else {
					blocks.items = append(blocks.items, typed("text", "text", string(b.source())))
				}
			}
		case content != nil:
			blocks.items = append(blocks.items, typed("text", "text", string(content.source())))
			if content.isObject() {
				result.set("structuredContent", content)
			}
		}
		result.members = append([]member{{name: "content", value: blocks}}, result.members...)
		if failed {
			result.set("isError", yes())
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
					add(b.get("tool_use_id").text(), "", b.get("content"), b.get("is_error") != nil && b.get("is_error").kind == 't')
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
