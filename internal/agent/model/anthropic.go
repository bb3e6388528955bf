package model

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/callyard/callyard/internal/format"
)

const (
	anthropicVersion   = "Anthropic-Version: 2023-06-01"
	anthropicMaxOutput = 8192 // tokens; required because the API has no default
)

// anthropic implements [Wire] for the Anthropic Messages API.
type anthropic struct{}

// Format implements [Wire].
func (anthropic) Format() format.Format { return format.Anthropic }

// User implements [Wire].
func (anthropic) User(text string) json.RawMessage { return roleMessage("user", text) }

// Request implements [Wire].
func (anthropic) Request(model string, r *Request, stream bool) (path string, body []byte, err error) {
	body, err = encode(struct {
		Model     string            `json:"model"`
		MaxOutput int               `json:"max_tokens"`
		System    string            `json:"system,omitempty"`
		Messages  []json.RawMessage `json:"messages"`
		Tools     json.RawMessage   `json:"tools,omitempty"`
		Stream    bool              `json:"stream,omitempty"`
	}{model, cmp.Or(r.MaxOutput, anthropicMaxOutput), r.System, r.Messages, someTools(r.Tools), stream})
	return "/v1/messages", body, err
}

type anthropicUsage struct {
	Input   int64 `json:"input_tokens"`
	Output  int64 `json:"output_tokens"`
	Read    int64 `json:"cache_read_input_tokens"`
	Written int64 `json:"cache_creation_input_tokens"`
}

// Read implements [Wire].
func (anthropic) Read(body []byte) (*Answer, error) {
	if e := faultOf(body); e != nil {
		return nil, e
	}
	var in struct {
		Content []json.RawMessage `json:"content"`
		Stop    string            `json:"stop_reason"`
		Usage   *anthropicUsage   `json:"usage"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, &shapeError{err.Error()}
	}
	if in.Content == nil {
		return nil, &shapeError{"it has no content"}
	}
	a := &Answer{Body: body, Stop: in.Stop}
	if u := in.Usage; u != nil {
		a.Usage = Usage{true, u.Input + u.Read + u.Written, u.Output, u.Read}
	}
	var kept []json.RawMessage
	for _, raw := range in.Content {
		var block struct {
			Type  string          `json:"type"`
			ID    string          `json:"id"`
			Name  string          `json:"name"`
			Text  string          `json:"text"`
			Input json.RawMessage `json:"input"`
		}
		if err := json.Unmarshal(raw, &block); err != nil {
			return nil, &shapeError{err.Error()}
		}
		switch block.Type {
		case "text":
			if block.Text == "" {
				continue // the API rejects it in a request
			}
			a.Text += block.Text
		case "tool_use":
			a.Calls = append(a.Calls, Call{block.ID, block.Name, block.Input})
		}
		kept = append(kept, raw)
	}
	if len(kept) == 0 {
		return a, nil // the API rejects a message without content
	}
	a.Messages = []json.RawMessage{json.RawMessage(`{"role":"assistant","content":` + string(arrayOf(kept)) + `}`)}
	return a, nil
}

// Stream implements [Wire].
func (anthropic) Stream(text func(string)) Assembler { return &anthropicStream{text: text} }

// anthropicStream assembles content blocks.
type anthropicStream struct {
	text    func(string)
	message map[string]json.RawMessage
	usage   map[string]json.RawMessage
	blocks  []*anthropicBlock
	stopped bool
}

// anthropicBlock is a content block: its initial members, and those to which deltas are added.
type anthropicBlock struct {
	members   map[string]json.RawMessage
	texts     textMembers // text, thinking, signature
	input     strings.Builder
	citations []json.RawMessage
}

type anthropicEvent struct {
	Type    string                     `json:"type"`
	Index   int                        `json:"index"`
	Message map[string]json.RawMessage `json:"message"`
	Block   map[string]json.RawMessage `json:"content_block"`
	Usage   map[string]json.RawMessage `json:"usage"`
	Delta   map[string]json.RawMessage `json:"delta"`
}

// Add implements [Assembler].
func (s *anthropicStream) Add(_ string, data []byte) (done bool, err error) {
	var in anthropicEvent
	if err := json.Unmarshal(data, &in); err != nil {
		return false, &shapeError{err.Error()}
	}
	switch in.Type {
	case "error":
		if e := faultOf(data); e != nil {
			return false, e
		}
		return false, &Error{Type: "error", Message: "the stream has an error without a message"}
	case "message_start":
		s.message = in.Message
		s.addUsage(in.Message["usage"])
	case "content_block_start":
		for len(s.blocks) <= in.Index && len(s.blocks) < maxBlocks {
			s.blocks = append(s.blocks, nil)
		}
		switch {
		case in.Index < 0 || in.Index >= len(s.blocks):
			return false, &shapeError{"a content block has an index that is out of range"}
		case in.Block == nil:
			return false, &shapeError{"a content block begins without its members"}
		}
		s.blocks[in.Index] = &anthropicBlock{members: in.Block, texts: make(textMembers)}
		var text string
		if json.Unmarshal(in.Block["text"], &text) == nil && text != "" {
			s.text(text)
		}
	case "content_block_delta":
		if in.Index < 0 || in.Index >= len(s.blocks) || s.blocks[in.Index] == nil {
			return false, &shapeError{"a piece belongs to a content block that has not begun"}
		}
		s.blocks[in.Index].add(in.Delta, s.text)
	case "message_delta":
		for name, value := range in.Delta {
			if s.message != nil {
				s.message[name] = value
			}
		}
		for name, value := range in.Usage {
			s.setUsage(name, value)
		}
	case "message_stop":
		s.stopped = true
		return true, nil
	}
	return false, nil
}

// maxBlocks limits the number of content blocks of an answer.
const maxBlocks = 10_000

func (s *anthropicStream) addUsage(raw json.RawMessage) {
	var usage map[string]json.RawMessage
	_ = json.Unmarshal(raw, &usage) // on error, no usage is reported
	for name, value := range usage {
		s.setUsage(name, value)
	}
}

func (s *anthropicStream) setUsage(name string, value json.RawMessage) {
	if s.usage == nil {
		s.usage = make(map[string]json.RawMessage)
	}
	if string(value) != "null" {
		s.usage[name] = value
	}
}

// add applies a delta to the block.
func (b *anthropicBlock) add(delta map[string]json.RawMessage, say func(string)) {
	for name, value := range delta {
		var text string
		isText := json.Unmarshal(value, &text) == nil
		switch {
		case name == "type":
		case name == "partial_json":
			b.input.WriteString(text)
		case name == "citation":
			b.citations = append(b.citations, value)
		case isText:
			b.texts.add(name, text)
			if name == "text" {
				say(text)
			}
		}
	}
}

// assembled returns the block in its non-streaming form. It returns nil for a tool call whose input is
// not JSON.
func (b *anthropicBlock) assembled() json.RawMessage {
	for name, more := range b.texts {
		var first string
		_ = json.Unmarshal(b.members[name], &first) // "" if the block has no initial text
		b.members[name] = textOf(first + more.String())
	}
	if b.input.Len() > 0 {
		input := json.RawMessage(b.input.String())
		if !json.Valid(input) {
			return nil
		}
		b.members["input"] = input
	}
	if len(b.citations) > 0 {
		b.members["citations"] = arrayOf(b.citations)
	}
	return objectOf(b.members)
}

// Answer implements [Assembler].
func (s *anthropicStream) Answer() (*Answer, error) {
	if !s.stopped || s.message == nil {
		return nil, ErrTruncated
	}
	var stop string
	_ = json.Unmarshal(s.message["stop_reason"], &stop) // null if the API gives no reason
	cutOff := stop == "max_tokens" || stop == "model_context_window_exceeded" || stop == "refusal"
	blocks := make([]json.RawMessage, 0, len(s.blocks))
	for _, b := range s.blocks {
		if b == nil {
			return nil, &shapeError{"a content block is missing"}
		}
		raw := b.assembled()
		switch {
		case raw != nil:
			blocks = append(blocks, raw)
		case !cutOff: // without the call, the answer would look complete
			return nil, &shapeError{fmt.Sprintf("the input of its call of %s is not JSON", b.members["name"])}
		}
	}
	s.message["content"] = arrayOf(blocks)
	if s.usage != nil {
		s.message["usage"] = objectOf(s.usage)
	}
	return anthropic{}.Read(objectOf(s.message))
}
