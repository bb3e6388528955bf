package modeltest

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
)

type responsesWire struct{}

func (responsesWire) name() string { return "openai-responses" }

func (responsesWire) read(body []byte) (*Request, error) {
	var in struct {
		Instructions string            `json:"instructions"`
		Input        []json.RawMessage `json:"input"`
		Tools        []struct {
			Type string `json:"type"`
			Name string `json:"name"`
		} `json:"tools"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	r := &Request{System: in.Instructions, Messages: len(in.Input)}
	for _, t := range in.Tools {
		if t.Type != "function" {
			return nil, errors.New("tools: the type must be function")
		}
		r.Tools = append(r.Tools, t.Name)
	}
	open := map[string]bool{}
	reasoning := "" // the encrypted content that signs the next item
	for i, raw := range in.Input {
		var m struct {
			Type, Role, ID string
			CallID         string `json:"call_id"`
			Output         json.RawMessage
			Encrypted      string `json:"encrypted_content"`
			Summary        json.RawMessage
		}
		if err := json.Unmarshal(raw, &m); err != nil {
			return nil, err
		}
		if reasoning != "" {
			r.signed, reasoning = append(r.signed, reasoning+"\n"+m.Type+m.CallID), ""
		}
		switch {
		case m.Type == "function_call":
			if len(open) == 0 {
				r.Results = nil
			}
			open[m.CallID] = true
		case m.Type == "function_call_output":
			if !open[m.CallID] {
				return nil, fmt.Errorf("input[%d]: no tool call found for function call output with call_id %s", i, m.CallID)
			}
			delete(open, m.CallID)
			r.Results = append(r.Results, Result{ID: m.CallID, Text: textOf(m.Output)})
		case m.Type == "reasoning":
			if m.Encrypted == "" {
				return nil, fmt.Errorf("input[%d]: reasoning without encrypted_content, and nothing is stored", i)
			}
			if len(m.Summary) == 0 {
				return nil, fmt.Errorf("input[%d].summary: missing required parameter", i)
			}
			reasoning = m.Encrypted
		case m.Type == "message" || m.Role == "user":
			if m.Role != "user" {
				r.Results = nil
			}
		default:
			return nil, fmt.Errorf("input[%d]: an item of type %q and role %q", i, m.Type, m.Role)
		}
	}
	if reasoning != "" {
		return nil, errors.New("input: an item of type 'reasoning' was provided without its required following item")
	}
	if len(open) > 0 {
		return nil, errors.New("input: no tool output found for a function call")
	}
	return r, nil
}

func (responsesWire) items(t *Turn, n int) (items []any) {
	if t.Thought != "" {
		items = append(items, map[string]any{"id": fmt.Sprintf("rs_%d", n), "type": "reasoning", "summary": []any{}, "encrypted_content": encrypted(n)})
	}
	if t.Text != "" || len(t.Calls) == 0 {
		items = append(items, map[string]any{"id": fmt.Sprintf("msg_%d", n), "type": "message", "status": "completed", "role": "assistant",
			"content": []any{map[string]any{"type": "output_text", "text": t.Text, "annotations": []any{}}}})
	}
	for i, c := range t.Calls {
		items = append(items, map[string]any{"id": fmt.Sprintf("fc_%d_%d", n, i), "type": "function_call", "status": "completed", "call_id": c.ID, "name": c.Name, "arguments": c.Arguments})
	}
	return items
}

func encrypted(n int) string { return fmt.Sprintf("gAAAAAB%d+/=", n) }

func (responsesWire) signed(t *Turn, n int) string {
	if t.Thought == "" {
		return ""
	}
	if t.Text != "" || len(t.Calls) == 0 {
		return encrypted(n) + "\nmessage"
	}
	return encrypted(n) + "\nfunction_call" + t.Calls[0].ID
}

func (w responsesWire) whole(t *Turn, n int) any { return w.response(w.items(t, n), n, t.Stop) }

func (responsesWire) response(items []any, n int, stop string) map[string]any {
	r := map[string]any{
		"id": fmt.Sprintf("resp_%d", n), "object": "response", "created_at": 1763000000, "status": "completed", "model": "test", "output": items,
		"usage": map[string]any{"input_tokens": 100, "input_tokens_details": map[string]any{"cached_tokens": 40}, "output_tokens": 10, "total_tokens": 110},
	}
	if stop != "" {
		r["status"], r["incomplete_details"] = "incomplete", map[string]any{"reason": stop}
	}
	return r
}

func (w responsesWire) stream(t *Turn, n int) (all []event) {
	seq := 0
	add := func(kind string, members map[string]any) {
		members["type"], members["sequence_number"] = kind, seq
		seq++
		all = append(all, event{kind, members})
	}
	for _, kind := range []string{"response.created", "response.in_progress"} {
		begun := w.response([]any{}, n, "")
		begun["status"], begun["usage"] = "in_progress", nil
		add(kind, map[string]any{"response": begun})
	}
	items := w.items(t, n)
	for i, it := range items {
		item := it.(map[string]any)
		id := item["id"]
		begun := maps.Clone(item)
		switch item["type"] {
		case "message":
			begun["content"], begun["status"] = []any{}, "in_progress"
		case "function_call":
			begun["arguments"], begun["status"] = "", "in_progress"
		}
		add("response.output_item.added", map[string]any{"output_index": i, "item": begun})
		switch item["type"] {
		case "message":
			part := func(text string) map[string]any {
				return map[string]any{"type": "output_text", "text": text, "annotations": []any{}, "logprobs": []any{}}
			}
			add("response.content_part.added", map[string]any{"item_id": id, "output_index": i, "content_index": 0, "part": part("")})
			for _, p := range pieces(t.Text, t.Piece) {
				add("response.output_text.delta", map[string]any{"item_id": id, "output_index": i, "content_index": 0, "delta": p, "logprobs": []any{}})
			}
			add("response.output_text.done", map[string]any{"item_id": id, "output_index": i, "content_index": 0, "text": t.Text, "logprobs": []any{}})
			add("response.content_part.done", map[string]any{"item_id": id, "output_index": i, "content_index": 0, "part": part(t.Text)})
		case "function_call":
			for _, p := range pieces(item["arguments"].(string), t.Piece) {
				add("response.function_call_arguments.delta", map[string]any{"item_id": id, "output_index": i, "delta": p})
			}
			add("response.function_call_arguments.done", map[string]any{"item_id": id, "output_index": i, "name": item["name"], "arguments": item["arguments"]})
		}
		add("response.output_item.done", map[string]any{"output_index": i, "item": item})
	}
	kind := "response.completed"
	if t.Stop != "" {
		kind = "response.incomplete"
	}
	add(kind, map[string]any{"response": w.response(items, n, t.Stop)})
	return all
}
