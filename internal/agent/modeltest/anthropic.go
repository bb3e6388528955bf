package modeltest

import (
	"encoding/json"
	"errors"
	"fmt"
)

type anthropicWire struct{}

func (anthropicWire) name() string { return "anthropic" }

func (anthropicWire) read(body []byte) (*Request, error) {
	var in struct {
		MaxTokens int             `json:"max_tokens"`
		System    json.RawMessage `json:"system"`
		Messages  []struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
		Tools []struct {
			Name   string          `json:"name"`
			Schema json.RawMessage `json:"input_schema"`
		} `json:"tools"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	if in.MaxTokens < 1 {
		return nil, errors.New("max_tokens: Field required")
	}
	r := &Request{System: textOf(in.System), Messages: len(in.Messages)}
	for _, t := range in.Tools {
		if len(t.Schema) == 0 {
			return nil, fmt.Errorf("tools: %s has no input_schema", t.Name)
		}
		r.Tools = append(r.Tools, t.Name)
	}
	open := map[string]bool{}
	for i, m := range in.Messages {
		var blocks []struct {
			Type, Text, ID, Signature, Thinking string
			ToolUse                             string `json:"tool_use_id"`
			Content                             json.RawMessage
		}
		var text string
		if json.Unmarshal(m.Content, &text) == nil {
			if text == "" {
				return nil, fmt.Errorf("messages.%d: text content blocks must be non-empty", i)
			}
		} else if err := json.Unmarshal(m.Content, &blocks); err != nil || len(blocks) == 0 {
			return nil, fmt.Errorf("messages.%d: content is required", i)
		}
		if m.Role != "user" && m.Role != "assistant" {
			return nil, fmt.Errorf("messages.%d: the role %q does not exist", i, m.Role)
		}
		if i == 0 && m.Role != "user" {
			return nil, errors.New("messages: first message must use the user role")
		}
		if m.Role == "assistant" { // consecutive user messages form one turn
			r.Results = nil
			r.Answers++
		}
		others := false
		for j, b := range blocks {
			switch b.Type {
			case "text":
				if b.Text == "" {
					return nil, fmt.Errorf("messages.%d.content.%d: text content blocks must be non-empty", i, j)
				}
				others = true
			case "tool_use":
				if m.Role != "assistant" {
					return nil, fmt.Errorf("messages.%d: tool_use in a message of the user", i)
				}
				open[b.ID] = true
			case "tool_result":
				if !open[b.ToolUse] {
					return nil, fmt.Errorf("messages.%d: unexpected tool_use_id %q found in tool_result blocks", i, b.ToolUse)
				}
				if others {
					return nil, fmt.Errorf("messages.%d: tool_result blocks must come first", i)
				}
				delete(open, b.ToolUse)
				r.Results = append(r.Results, Result{ID: b.ToolUse, Text: textOf(b.Content)})
			case "thinking":
				if b.Signature == "" {
					return nil, fmt.Errorf("messages.%d.content.%d.thinking.signature: Field required", i, j)
				}
				r.signed = append(r.signed, b.Signature+"\n"+b.Thinking)
			case "image", "document", "redacted_thinking":
				others = true
			default:
				return nil, fmt.Errorf("messages.%d.content.%d: the type %q does not exist", i, j, b.Type)
			}
		}
		if m.Role == "user" && len(open) > 0 {
			return nil, fmt.Errorf("messages.%d: tool_use ids were found without tool_result blocks immediately after", i)
		}
	}
	if len(open) > 0 {
		return nil, errors.New("messages: tool_use at the end without tool_result")
	}
	return r, nil
}

func signature(n int) string { return fmt.Sprintf("EqoBCkgIARAB%d+/=", n) }

func (anthropicWire) signed(t *Turn, n int) string {
	if t.Thought == "" {
		return ""
	}
	return signature(n) + "\n" + t.Thought
}

func (anthropicWire) blocks(t *Turn, n int) (blocks []map[string]any) {
	if t.Thought != "" {
		blocks = append(blocks, map[string]any{"type": "thinking", "thinking": t.Thought, "signature": signature(n)})
	}
	if t.Text != "" {
		blocks = append(blocks, map[string]any{"type": "text", "text": t.Text})
	}
	for _, c := range t.Calls {
		blocks = append(blocks, map[string]any{"type": "tool_use", "id": c.ID, "name": c.Name, "input": json.RawMessage(c.Arguments)})
	}
	return blocks
}

func (w anthropicWire) message(content any, stop any, n int) map[string]any {
	return map[string]any{
		"id": fmt.Sprintf("msg_%d", n), "type": "message", "role": "assistant", "model": "test", "content": content, "stop_reason": stop, "stop_sequence": nil,
		"usage": map[string]any{"input_tokens": 60, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 40, "output_tokens": 10},
	}
}

func (anthropicWire) stop(t *Turn) string {
	switch {
	case t.Stop != "":
		return t.Stop
	case len(t.Calls) > 0:
		return "tool_use"
	}
	return "end_turn"
}

func (w anthropicWire) whole(t *Turn, n int) any {
	blocks := w.blocks(t, n)
	if blocks == nil {
		blocks = []map[string]any{}
	}
	return w.message(blocks, w.stop(t), n)
}

func (w anthropicWire) stream(t *Turn, n int) (all []event) {
	add := func(kind string, members map[string]any) {
		members["type"] = kind
		all = append(all, event{kind, members})
	}
	begun := w.message([]any{}, nil, n)
	begun["usage"].(map[string]any)["output_tokens"] = 1 // the count so far; the last event has the total
	add("message_start", map[string]any{"message": begun})
	add("ping", map[string]any{})
	for i, b := range w.blocks(t, n) {
		delta := func(kind, member, text string) {
			for _, p := range pieces(text, t.Piece) {
				add("content_block_delta", map[string]any{"index": i, "delta": map[string]any{"type": kind, member: p}})
			}
		}
		switch b["type"] {
		case "thinking":
			add("content_block_start", map[string]any{"index": i, "content_block": map[string]any{"type": "thinking", "thinking": "", "signature": ""}})
			delta("thinking_delta", "thinking", t.Thought)
			add("content_block_delta", map[string]any{"index": i, "delta": map[string]any{"type": "signature_delta", "signature": signature(n)}})
		case "text":
			add("content_block_start", map[string]any{"index": i, "content_block": map[string]any{"type": "text", "text": ""}})
			delta("text_delta", "text", t.Text)
		case "tool_use":
			add("content_block_start", map[string]any{"index": i, "content_block": map[string]any{"type": "tool_use", "id": b["id"], "name": b["name"], "input": map[string]any{}}})
			add("content_block_delta", map[string]any{"index": i, "delta": map[string]any{"type": "input_json_delta", "partial_json": ""}})
			delta("input_json_delta", "partial_json", string(b["input"].(json.RawMessage)))
		}
		add("content_block_stop", map[string]any{"index": i})
	}
	add("message_delta", map[string]any{"delta": map[string]any{"stop_reason": w.stop(t), "stop_sequence": nil}, "usage": map[string]any{"output_tokens": 10}})
	add("message_stop", map[string]any{})
	return all
}
