package modeltest

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

type geminiWire struct{}

func (geminiWire) name() string { return "gemini" }

// geminiPart is a part of a content in a request.
type geminiPart struct {
	Text      string
	Signature signatureBytes         `json:"thoughtSignature"`
	Call      *struct{ Name string } `json:"functionCall"`
	Response  *struct {
		ID, Name string
		Response json.RawMessage
	} `json:"functionResponse"`
}

// signatureBytes is encoded as base64; other text is an error. The JSON form of protocol
// buffers allows the standard and the URL alphabet, with or without padding. The official
// library for Python uses the URL alphabet.
type signatureBytes []byte

func (b *signatureBytes) UnmarshalJSON(text []byte) (err error) {
	var s string
	if err := json.Unmarshal(text, &s); err != nil {
		return err
	}
	s = strings.NewReplacer("-", "+", "_", "/", "=", "").Replace(s)
	*b, err = base64.RawStdEncoding.DecodeString(s)
	return err
}

func (p *geminiPart) empty() bool {
	return p.Text == "" && p.Signature == nil && p.Call == nil && p.Response == nil
}

func geminiCalls(parts []geminiPart) (n int) {
	for _, p := range parts {
		if p.Call != nil {
			n++
		}
	}
	return n
}

// sign records the signed parts of an answer.
func (r *Request) sign(parts []geminiPart) {
	calls := 0
	for _, p := range parts {
		name := ""
		if p.Call != nil {
			name = fmt.Sprintf("call %d: %s", calls, p.Call.Name)
			calls++
		}
		if p.Signature != nil {
			r.signed = append(r.signed, string(p.Signature)+"\n"+name)
		}
	}
}

func (geminiWire) read(body []byte) (*Request, error) {
	var in struct {
		System struct {
			Parts []struct{ Text string }
		} `json:"systemInstruction"`
		Contents []struct {
			Role  string
			Parts []geminiPart
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
	called, before := 0, ""
	for i, c := range in.Contents {
		if c.Role != "user" && c.Role != "model" {
			return nil, fmt.Errorf("contents[%d]: please use a valid role: user, model", i)
		}
		if len(c.Parts) == 0 {
			return nil, fmt.Errorf("contents[%d].parts: must not be empty", i)
		}
		for j, p := range c.Parts {
			if p.empty() {
				return nil, fmt.Errorf("contents[%d].parts[%d].data: required oneof field 'data' must have one initialized field", i, j)
			}
		}
		// The official library keeps each chunk of a stream as a separate content: consecutive contents
		// of the same role form one turn.
		if c.Role == "model" && before == "model" {
			called += geminiCalls(c.Parts)
			r.sign(c.Parts)
			continue
		}
		before = c.Role
		if c.Role == "model" {
			r.Results = nil
			r.Answers++
			r.sign(c.Parts)
		}
		answered := 0
		for _, p := range c.Parts {
			if p.Response != nil {
				answered++
				r.Results = append(r.Results, Result{ID: p.Response.ID, Name: p.Response.Name, Text: string(p.Response.Response)})
			}
		}
		if called != answered {
			return nil, fmt.Errorf("contents[%d]: please ensure that the number of function response parts is equal to the number of function call parts: %d, %d", i, answered, called)
		}
		called = geminiCalls(c.Parts)
	}
	if called > 0 {
		return nil, errors.New("contents: function calls at the end without responses")
	}
	return r, nil
}

// signed returns the signature of the first call, and its position.
func (w geminiWire) signed(t *Turn, n int) string {
	if len(t.Calls) == 0 {
		return ""
	}
	return string(geminiSignature(n)) + "\ncall 0: " + t.Calls[0].Name
}

// geminiSignature returns the signature of answer n. JSON encodes it as base64.
func geminiSignature(n int) []byte { return fmt.Appendf(nil, "\x0a\xc2\xff signature %d", n) }

// geminiIDs reports whether the calls of answer n have ids, as with newer models.
func geminiIDs(n int) bool { return n%2 == 1 }

func (geminiWire) parts(t *Turn, n int) (parts []any) {
	if t.Thought != "" {
		parts = append(parts, map[string]any{"text": t.Thought, "thought": true})
	}
	if t.Text != "" {
		parts = append(parts, map[string]any{"text": t.Text})
	}
	for i, c := range t.Calls {
		call := map[string]any{"name": c.Name, "args": json.RawMessage(c.Arguments)}
		if geminiIDs(n) {
			call["id"] = c.ID
		}
		part := map[string]any{"functionCall": call}
		if i == 0 {
			part["thoughtSignature"] = geminiSignature(n)
		}
		parts = append(parts, part)
	}
	return parts
}

// chunk returns an answer or a piece of one. Only the last piece has the total token counts.
func (geminiWire) chunk(parts []any, finish string) map[string]any {
	candidate := map[string]any{"content": map[string]any{"role": "model", "parts": parts}, "index": 0}
	if finish != "" {
		candidate["finishReason"] = finish
	}
	usage := map[string]any{"promptTokenCount": 100, "candidatesTokenCount": 1, "totalTokenCount": 101}
	if finish != "" {
		usage = map[string]any{"promptTokenCount": 100, "candidatesTokenCount": 7, "thoughtsTokenCount": 3, "cachedContentTokenCount": 40, "totalTokenCount": 110}
	}
	return map[string]any{"candidates": []any{candidate}, "modelVersion": "test", "usageMetadata": usage}
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
