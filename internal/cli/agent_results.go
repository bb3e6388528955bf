package cli

import (
	"encoding/json"
	"strings"

	"github.com/callyard/callyard/internal/kit/truncate"
	"github.com/callyard/callyard/internal/kit/visible"
)

// shownResult limits the bytes of a result that are shown. The model gets all of it.
const shownResult = 4 << 10

// resultTexts returns the texts of the results in messages for a model, in their order. The messages
// have the format of any provider.
func resultTexts(messages []json.RawMessage) (texts []string) {
	for _, raw := range messages {
		var m struct {
			Role    string          `json:"role"`
			Type    string          `json:"type"`
			Content json.RawMessage `json:"content"`
			Output  json.RawMessage `json:"output"`
			Parts   []struct {
				Response *struct {
					Response json.RawMessage `json:"response"`
				} `json:"functionResponse"`
			} `json:"parts"`
		}
		if json.Unmarshal(raw, &m) != nil {
			continue
		}
		switch {
		case m.Role == "tool": // chat completions
			texts = append(texts, contentText(m.Content))
		case m.Type == "function_call_output": // Responses
			texts = append(texts, contentText(m.Output))
		}
		for _, p := range m.Parts { // Gemini
			if p.Response != nil {
				texts = append(texts, contentText(p.Response.Response))
			}
		}
		var blocks []struct {
			Type    string          `json:"type"`
			Content json.RawMessage `json:"content"`
		}
		_ = json.Unmarshal(m.Content, &blocks) // other content has no results of Anthropic
		for _, b := range blocks {
			if b.Type == "tool_result" {
				texts = append(texts, contentText(b.Content))
			}
		}
	}
	return texts
}

// contentText returns the text of a result: a text, a list of parts, or an object of Gemini, which has
// the result or its reason as the only member.
func contentText(raw json.RawMessage) string {
	var text string
	var parts []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	var object map[string]json.RawMessage
	switch {
	case json.Unmarshal(raw, &text) == nil:
	case json.Unmarshal(raw, &parts) == nil:
		var b strings.Builder
		for _, p := range parts {
			if p.Text == "" {
				p.Text = "[" + p.Type + "]"
			}
			b.WriteString(p.Text)
		}
		text = b.String()
	case json.Unmarshal(raw, &object) == nil && len(object) == 1:
		for _, only := range object {
			return contentText(only)
		}
	default:
		return string(raw)
	}
	return text
}

// result formats the text of a result: JSON as for arguments, and other text by lines, below its call.
func (p *agentPerson) result(text string) string {
	text = strings.TrimSpace(text)
	if strings.HasPrefix(text, "{") || strings.HasPrefix(text, "[") {
		if json.Valid([]byte(text)) {
			text = strings.TrimPrefix(p.folded(json.RawMessage(text)), "\n")
		}
	}
	return "  " + strings.ReplaceAll(visible.Terminal(truncate.Text(text, shownResult)), "\n", "\n  ")
}
