package modeltest

import (
	"encoding/json"
	"errors"
	"fmt"
)

type geminiWire struct{}

func (geminiWire) name() string { return "gemini" }

func (geminiWire) read(body []byte) (*Request, error) {
	var in struct {
		System struct {
			Parts []struct{ Text string }
		} `json:"systemInstruction"`
		Contents []struct {
			Role  string
			Parts []struct {
				Text      *string
				Signature string                 `json:"thoughtSignature"`
				Call      *struct{ Name string } `json:"functionCall"`
				Response  *struct {
					ID, Name string
					Response json.RawMessage
				} `json:"functionResponse"`
			}
		}
		Tools []struct {
			Declarations []struct{ Name string } `json:"functionDeclarations"`
		}
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	r := &Request{Messages: len(in.Contents)}
	for _, p := range in.System.Parts {
		r.System += p.Text
	}
	for _, t := range in.Tools {
		for _, d := range t.Declarations {
			r.Tools = append(r.Tools, d.Name)
		}
	}
	called := 0
	for i, c := range in.Contents {
		if c.Role != "user" && c.Role != "model" {
			return nil, fmt.Errorf("contents[%d]: please use a valid role: user, model", i)
		}
		if len(c.Parts) == 0 {
			return nil, fmt.Errorf("contents[%d].parts: must not be empty", i)
		}
		if c.Role == "model" {
			r.Answers++
		}
		answered := 0
		r.Results = nil
		calls := 0
		for _, p := range c.Parts {
			switch {
			case p.Call != nil:
				calls++
			case p.Response != nil:
				answered++
				r.Results = append(r.Results, Result{ID: p.Response.ID, Name: p.Response.Name, Text: string(p.Response.Response)})
			}
		}
		if called != answered {
			return nil, fmt.Errorf("contents[%d]: please ensure that the number of function response parts is equal to the number of function call parts: %d, %d", i, answered, called)
		}
		called = calls
	}
	if called > 0 {
		return nil, errors.New("contents: function calls at the end without responses")
	}
	if err := checkNames(r.Tools); err != nil {
		return nil, err
	}
	return r, nil
}

// signed is the first call with its signature, as it stood.
func (w geminiWire) signed(t *Turn, n int) string {
	if len(t.Calls) == 0 {
		return ""
	}
	return `"thoughtSignature":"` + geminiSignature(n) + `"`
}

func geminiSignature(n int) string { return fmt.Sprintf("CsIBAVKhc7s%d=", n) }

func (geminiWire) parts(t *Turn, n int) (parts []any) {
	if t.Thought != "" {
		parts = append(parts, map[string]any{"text": t.Thought, "thought": true})
	}
	if t.Text != "" {
		parts = append(parts, map[string]any{"text": t.Text})
	}
	for i, c := range t.Calls {
		call := map[string]any{"name": c.Name, "args": json.RawMessage(c.Arguments)}
		part := map[string]any{"functionCall": call}
		if i == 0 {
			part["thoughtSignature"] = geminiSignature(n)
		}
		parts = append(parts, part)
	}
	return parts
}

func (geminiWire) chunk(parts []any, finish string) map[string]any {
	candidate := map[string]any{"content": map[string]any{"role": "model", "parts": parts}, "index": 0}
	if finish != "" {
		candidate["finishReason"] = finish
	}
	return map[string]any{
		"candidates": []any{candidate}, "modelVersion": "test",
		"usageMetadata": map[string]any{"promptTokenCount": 100, "candidatesTokenCount": 10, "cachedContentTokenCount": 40, "totalTokenCount": 110},
	}
}

func (geminiWire) stop(t *Turn) string {
	if t.Stop != "" {
		return t.Stop
	}
	return "STOP"
}

func (w geminiWire) whole(t *Turn, n int) any {
	parts := w.parts(t, n)
	if parts == nil {
		parts = []any{map[string]any{"text": ""}}
	}
	return w.chunk(parts, w.stop(t))
}

func (w geminiWire) stream(t *Turn, n int) (all []event) {
	for _, p := range pieces(t.Thought, t.Piece) {
		all = append(all, event{"", w.chunk([]any{map[string]any{"text": p, "thought": true}}, "")})
	}
	for _, p := range pieces(t.Text, t.Piece) {
		all = append(all, event{"", w.chunk([]any{map[string]any{"text": p}}, "")})
	}
	bare := *t
	bare.Thought, bare.Text = "", ""
	if calls := w.parts(&bare, n); calls != nil {
		all = append(all, event{"", w.chunk(calls, "")})
	}
	return append(all, event{"", w.chunk([]any{map[string]any{"text": ""}}, w.stop(t))})
}
