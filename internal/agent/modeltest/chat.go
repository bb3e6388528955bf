package modeltest

import (
	"encoding/json"
	"errors"
	"fmt"
)

type chatWire struct{}

func (chatWire) name() string { return "openai" }

func (chatWire) read(body []byte) (*Request, error) {
	var in struct {
		Model    string `json:"model"`
		Messages []struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
			CallID  string          `json:"tool_call_id"`
			Calls   []struct {
				ID       string `json:"id"`
				Type     string `json:"type"`
				Function struct {
					Name      string `json:"name"`
					Arguments string `json:"arguments"`
				} `json:"function"`
			} `json:"tool_calls"`
		} `json:"messages"`
		Tools []struct {
			Type     string `json:"type"`
			Function struct {
				Name string `json:"name"`
			} `json:"function"`
		} `json:"tools"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	r := &Request{Messages: len(in.Messages)}
	for _, t := range in.Tools {
		if t.Type != "function" {
			return nil, errors.New("tools: the type must be function")
		}
		r.Tools = append(r.Tools, t.Function.Name)
	}
	open := map[string]bool{} // calls whose results must come next
	for i, m := range in.Messages {
		if m.Role != "tool" && len(open) > 0 {
			return nil, fmt.Errorf("messages[%d]: an assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'", i)
		}
		switch m.Role {
		case "system":
			r.System = textOf(m.Content)
			if i != 0 {
				return nil, errors.New("messages: the system message is not the first")
			}
		case "user":
			if string(m.Content) == "" || string(m.Content) == "null" {
				return nil, fmt.Errorf("messages[%d]: a user message needs content", i)
			}
		case "assistant":
			r.Results = nil
			r.Answers++
			if len(m.Calls) == 0 && (len(m.Content) == 0 || string(m.Content) == "null") {
				return nil, fmt.Errorf("messages[%d]: content or tool_calls are required", i)
			}
			for _, c := range m.Calls {
				if c.ID == "" || c.Type != "function" || open[c.ID] {
					return nil, fmt.Errorf("messages[%d]: a call without an id or type, or an id that is there twice", i)
				}
				open[c.ID] = true
			}
		case "tool":
			if !open[m.CallID] {
				return nil, fmt.Errorf("messages[%d]: the tool_call_id %q answers no call", i, m.CallID)
			}
			delete(open, m.CallID)
			r.Results = append(r.Results, Result{ID: m.CallID, Text: textOf(m.Content)})
		default:
			return nil, fmt.Errorf("messages[%d]: the role %q does not exist", i, m.Role)
		}
	}
	if len(open) > 0 {
		return nil, errors.New("messages: calls without results at the end")
	}
	if len(r.Tools) > 128 {
		return nil, errors.New("tools: at most 128")
	}
	return r, nil
}

func (chatWire) signed(*Turn, int) string { return "" }

func (chatWire) stop(t *Turn) string {
	switch {
	case t.Stop != "":
		return t.Stop
	case len(t.Calls) > 0 && t.Quirk != SameIndex:
		return "tool_calls"
	}
	return "stop"
}

var chatUsage = map[string]any{"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110, "prompt_tokens_details": map[string]any{"cached_tokens": 40}}

func (w chatWire) whole(t *Turn, n int) any {
	message := map[string]any{"role": "assistant", "content": nil, "refusal": nil}
	if t.Text != "" || len(t.Calls) == 0 {
		message["content"] = t.Text
	}
	if t.Thought != "" {
		message["reasoning_content"] = t.Thought
	}
	calls := []any{}
	for _, c := range t.Calls {
		calls = append(calls, map[string]any{"id": c.ID, "type": "function", "function": map[string]any{"name": c.Name, "arguments": c.Arguments}})
	}
	if len(calls) > 0 {
		message["tool_calls"] = calls
	}
	return map[string]any{
		"id": fmt.Sprintf("chatcmpl-%d", n), "object": "chat.completion", "created": 1763000000, "model": "test",
		"choices": []any{map[string]any{"index": 0, "message": message, "finish_reason": w.stop(t), "logprobs": nil}}, "usage": chatUsage,
	}
}

func (w chatWire) stream(t *Turn, n int) (all []event) {
	add := func(delta map[string]any, finish any) {
		all = append(all, event{"", map[string]any{
			"id": fmt.Sprintf("chatcmpl-%d", n), "object": "chat.completion.chunk", "created": 1763000000, "model": "test",
			"choices": []any{map[string]any{"index": 0, "delta": delta, "finish_reason": finish, "logprobs": nil}}, "usage": nil,
		}})
	}
	add(map[string]any{"role": "assistant", "content": "", "refusal": nil}, nil)
	for _, p := range pieces(t.Thought, t.Piece) {
		add(map[string]any{"reasoning_content": p}, nil)
	}
	for _, p := range pieces(t.Text, t.Piece) {
		add(map[string]any{"content": p}, nil)
	}
	for i, c := range t.Calls {
		function := map[string]any{"name": c.Name, "arguments": ""}
		one := map[string]any{"index": i, "id": c.ID, "type": "function", "function": function}
		if t.Quirk == SameIndex {
			one["index"], function["arguments"] = 0, c.Arguments
			add(map[string]any{"tool_calls": []any{one}}, nil)
			continue
		}
		add(map[string]any{"tool_calls": []any{one}}, nil)
		for _, p := range pieces(c.Arguments, t.Piece) {
			add(map[string]any{"tool_calls": []any{map[string]any{"index": i, "function": map[string]any{"arguments": p}}}}, nil)
		}
	}
	add(map[string]any{}, w.stop(t))
	all = append(all, event{"", map[string]any{"id": fmt.Sprintf("chatcmpl-%d", n), "object": "chat.completion.chunk", "created": 1763000000, "model": "test", "choices": []any{}, "usage": chatUsage}})
	return append(all, event{"", "[DONE]"})
}
