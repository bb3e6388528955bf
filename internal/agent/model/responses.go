package model

import (
	"cmp"
	"encoding/json"

	"github.com/callyard/callyard/internal/format"
)

// responses implements [Wire] for OpenAI Responses. OpenAI stores nothing: the reasoning is
// received encrypted and is sent back.
type responses struct{}

// Format implements [Wire].
func (responses) Format() format.Format { return format.Responses }

// User implements [Wire].
func (responses) User(text string) json.RawMessage { return roleMessage("user", text) }

// Request implements [Wire].
func (responses) Request(model string, r *Request, stream bool) (path string, body []byte, err error) {
	body, err = encode(struct {
		Model        string            `json:"model"`
		Instructions string            `json:"instructions,omitempty"`
		Input        []json.RawMessage `json:"input"`
		Tools        json.RawMessage   `json:"tools,omitempty"`
		MaxOutput    int               `json:"max_output_tokens,omitempty"`
		Store        bool              `json:"store"`
		Include      []string          `json:"include"`
		Stream       bool              `json:"stream,omitempty"`
	}{model, r.System, r.Messages, someTools(r.Tools), r.MaxOutput, false, []string{"reasoning.encrypted_content"}, stream})
	return "/responses", body, err
}

// Read implements [Wire].
func (responses) Read(body []byte) (*Answer, error) {
	if e := faultOf(body); e != nil {
		return nil, e
	}
	var in struct {
		Status     string            `json:"status"`
		Output     []json.RawMessage `json:"output"`
		Incomplete struct {
			Reason string `json:"reason"`
		} `json:"incomplete_details"`
		Usage *struct {
			Input   int64 `json:"input_tokens"`
			Output  int64 `json:"output_tokens"`
			Details struct {
				Cached int64 `json:"cached_tokens"`
			} `json:"input_tokens_details"`
		} `json:"usage"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, &shapeError{err.Error()}
	}
	if in.Output == nil {
		return nil, &shapeError{"it has no output"}
	}
	a := &Answer{Body: body, Messages: in.Output, Stop: cmp.Or(in.Incomplete.Reason, in.Status)}
	if u := in.Usage; u != nil {
		a.Usage = Usage{true, u.Input, u.Output, u.Details.Cached}
	}
	for _, raw := range in.Output {
		var item struct {
			Type      string `json:"type"`
			CallID    string `json:"call_id"`
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
			Content   []struct {
				Text    string `json:"text"`
				Refusal string `json:"refusal"`
			} `json:"content"`
		}
		if err := json.Unmarshal(raw, &item); err != nil {
			return nil, &shapeError{err.Error()}
		}
		switch item.Type {
		case "message":
			for _, c := range item.Content {
				a.Text += c.Text + c.Refusal
			}
		case "function_call":
			a.Calls = append(a.Calls, Call{item.CallID, item.Name, json.RawMessage(item.Arguments)})
		}
	}
	return a, nil
}

// Stream implements [Wire].
func (responses) Stream(text func(string)) Assembler { return &responsesStream{text: text} }

// responsesStream waits for the event that contains the complete response.
type responsesStream struct {
	text  func(string)
	items []json.RawMessage
	whole json.RawMessage
}

// Add implements [Assembler].
func (s *responsesStream) Add(name string, data []byte) (done bool, err error) {
	var in struct {
		Type     string          `json:"type"`
		Delta    json.RawMessage `json:"delta"`
		Item     json.RawMessage `json:"item"`
		Response json.RawMessage `json:"response"`
		Message  string          `json:"message"`
		Code     string          `json:"code"`
	}
	if err := json.Unmarshal(data, &in); err != nil {
		return false, &shapeError{err.Error()}
	}
	if in.Type == "" {
		in.Type = name
	}
	switch in.Type {
	case "response.output_text.delta", "response.refusal.delta":
		var text string
		if json.Unmarshal(in.Delta, &text) == nil {
			s.text(text)
		}
	case "response.output_item.done":
		s.items = append(s.items, in.Item)
	case "response.completed", "response.incomplete":
		s.whole = in.Response
		return true, nil
	case "response.failed":
		if e := faultOf(in.Response); e != nil {
			return false, e
		}
		return false, &Error{Type: "response.failed", Message: "the response failed"}
	case "error":
		if e := faultOf(data); e != nil {
			return false, e
		}
		return false, &Error{Type: in.Code, Message: in.Message}
	}
	return false, nil
}

// Answer implements [Assembler].
func (s *responsesStream) Answer() (*Answer, error) {
	if s.whole == nil {
		return nil, ErrTruncated
	}
	var members map[string]json.RawMessage
	switch err := json.Unmarshal(s.whole, &members); {
	case err != nil:
		return nil, &shapeError{err.Error()}
	case members == nil: // null
		return nil, &shapeError{"its last event has no response"}
	}
	var output []json.RawMessage
	_ = json.Unmarshal(members["output"], &output) // other shapes have no items
	if len(output) == 0 && len(s.items) > 0 {
		members["output"] = arrayOf(s.items) // some servers omit the items in the last event
		s.whole = objectOf(members)
	}
	return responses{}.Read(s.whole)
}
