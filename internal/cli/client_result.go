package cli

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/callyard/callyard/internal/kit/visible"
)

// toolResult holds the members of a CallToolResult that the commands use.
type toolResult struct {
	Content    []json.RawMessage `json:"content"`
	Structured json.RawMessage   `json:"structuredContent"`
}

// block is one content block.
type block struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	Data     string `json:"data"`
	MIME     string `json:"mimeType"`
	URI      string `json:"uri"`
	Name     string `json:"name"`
	Resource struct {
		URI  string `json:"uri"`
		MIME string `json:"mimeType"`
		Text string `json:"text"`
		Blob string `json:"blob"`
	} `json:"resource"`
}

func isToolError(result []byte) bool {
	var r struct {
		IsError bool `json:"isError"`
	}
	return json.Unmarshal(result, &r) == nil && r.IsError
}

// result prints the result of a tool for people: text verbatim, other blocks as one line each, and
// the structured content if there is no text. On a terminal it makes control characters visible,
// because the text comes from the tool.
func (s screen) result(body []byte) error {
	var r toolResult
	if err := json.Unmarshal(body, &r); err != nil {
		return s.lines(pretty(body))
	}
	hasText := false
	for _, raw := range r.Content {
		var b block
		if err := json.Unmarshal(raw, &b); err != nil {
			b = block{}
		}
		if b.Type == "text" {
			hasText = true
			if err := s.lines(b.Text); err != nil {
				return err
			}
			continue
		}
		if err := s.text(b.summary() + "\n"); err != nil {
			return err
		}
	}
	if !hasText && len(r.Structured) > 0 {
		return s.lines(pretty(r.Structured))
	}
	return nil
}

// lines writes untrusted text and ends its last line.
func (s screen) lines(text string) error {
	if s.terminal {
		text = visible.Terminal(text)
	}
	if text == "" || !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return s.text(text)
}

// summary describes a block other than text on one line.
func (b *block) summary() string {
	words := []string{cmp.Or(b.Type, "content without a type")}
	n := -1
	switch b.Type {
	case "image", "audio":
		words = append(words, b.MIME)
		n = decodedSize(b.Data)
	case "resource_link":
		words = []string{"resource", b.Name, b.URI, b.MIME}
	case "resource":
		words = append(words, b.Resource.URI, b.Resource.MIME)
		if n = len(b.Resource.Text); b.Resource.Blob != "" {
			n = decodedSize(b.Resource.Blob)
		}
	}
	text := oneLine(strings.Join(words, " "))
	if n >= 0 {
		text += ", " + size(n)
	}
	return "[" + text + "]"
}

// decodedSize returns the decoded length of base64 text.
func decodedSize(text string) int {
	return len(strings.TrimRight(text, "=")) * 3 / 4
}
