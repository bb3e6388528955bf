package eval

import (
	"encoding/json"
	"strings"
)

// messageText returns the text of the message of a provider's API, or of the whole response, without
// thoughts. It returns "" if there is none.
func messageText(raw json.RawMessage) string { return textIn(raw, 8) }

// textIn is messageText for a message in which texts are nested at most depth deep.
func textIn(raw json.RawMessage, depth int) string {
	var text string
	var list []json.RawMessage
	var m struct {
		Type       string            `json:"type"`
		Thought    bool              `json:"thought"`
		Text       string            `json:"text"`
		Content    json.RawMessage   `json:"content"`    // chat completions, Anthropic, Responses, a candidate of Gemini
		Parts      json.RawMessage   `json:"parts"`      // Gemini
		Output     json.RawMessage   `json:"output"`     // Responses
		Message    json.RawMessage   `json:"message"`    // a choice of chat completions
		Choices    []json.RawMessage `json:"choices"`    // chat completions
		Candidates []json.RawMessage `json:"candidates"` // Gemini
	}
	switch {
	case len(raw) == 0 || depth == 0:
	case raw[0] == '"':
		_ = json.Unmarshal(raw, &text) // "" if it is no text
	case raw[0] == '[':
		_ = json.Unmarshal(raw, &list)
	case json.Unmarshal(raw, &m) != nil || m.Thought || m.Type == "function_call_output":
	case m.Text != "":
		return m.Text
	case len(m.Choices) > 0:
		return textIn(m.Choices[0], depth-1)
	case len(m.Candidates) > 0:
		return textIn(m.Candidates[0], depth-1)
	default:
		list = []json.RawMessage{m.Message, m.Content, m.Parts, m.Output}
	}
	parts := []string{text}
	for _, part := range list {
		parts = append(parts, textIn(part, depth-1))
	}
	return strings.Join(parts, "")
}
