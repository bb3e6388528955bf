package model

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/callyard/callyard/internal/format"
	"github.com/callyard/callyard/internal/kit/plainjson"
)

// chat implements [Wire] for OpenAI chat completions.
type chat struct{}

// Format implements [Wire].
func (chat) Format() format.Format { return format.OpenAI }

// User implements [Wire].
func (chat) User(text string) json.RawMessage { return roleMessage("user", text) }

func roleMessage(role, text string) json.RawMessage {
	return json.RawMessage(`{"role":"` + role + `","content":` + string(textOf(text)) + `}`)
}

// Request implements [Wire].
func (chat) Request(model string, r *Request, stream bool) (path string, body []byte, err error) {
	messages := r.Messages
	if r.System != "" {
		messages = append([]json.RawMessage{roleMessage("system", r.System)}, messages...)
	}
	type options struct {
		IncludeUsage bool `json:"include_usage"`
	}
	in := struct {
		Model     string            `json:"model"`
		Messages  []json.RawMessage `json:"messages"`
		Tools     json.RawMessage   `json:"tools,omitempty"`
		MaxOutput int               `json:"max_completion_tokens,omitempty"`
		Stream    bool              `json:"stream,omitempty"`
		Options   *options          `json:"stream_options,omitempty"`
	}{Model: model, Messages: messages, Tools: someTools(r.Tools), MaxOutput: r.MaxOutput, Stream: stream}
	if stream {
		in.Options = &options{true}
	}
	body, err = encode(in)
	return "/chat/completions", body, err
}

// someTools omits an empty list, which some APIs reject.
func someTools(tools json.RawMessage) json.RawMessage {
	if t := string(bytes.TrimSpace(tools)); t == "" || t == "[]" || t == "null" {
		return nil
	}
	return tools
}

// chatBody is a completion or a chunk of one.
type chatBody struct {
	ID      json.RawMessage `json:"id,omitempty"`
	Object  string          `json:"object,omitempty"`
	Created json.RawMessage `json:"created,omitempty"`
	Model   json.RawMessage `json:"model,omitempty"`
	Choices []chatChoice    `json:"choices"`
	Usage   *chatUsage      `json:"usage,omitempty"`
}

type chatChoice struct {
	Index   int                        `json:"index"`
	Message json.RawMessage            `json:"message,omitempty"`
	Delta   map[string]json.RawMessage `json:"delta,omitempty"`
	Finish  string                     `json:"finish_reason"`
}

type chatUsage struct {
	Input   int64 `json:"prompt_tokens"`
	Output  int64 `json:"completion_tokens"`
	Details struct {
		Cached int64 `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
}

func (u *chatUsage) usage() Usage {
	if u == nil {
		return Usage{}
	}
	return Usage{true, u.Input, u.Output, u.Details.Cached}
}

// Read implements [Wire].
func (chat) Read(body []byte) (*Answer, error) {
	var in chatBody
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, &shapeError{err.Error()}
	}
	if e := faultOf(body); e != nil {
		return nil, e
	}
	if len(in.Choices) == 0 || len(in.Choices[0].Message) == 0 {
		return nil, &shapeError{"it has no choice with a message"}
	}
	choice := in.Choices[0]
	a := &Answer{Body: body, Messages: []json.RawMessage{choice.Message}, Stop: choice.Finish, Usage: in.Usage.usage()}
	var m struct {
		Content json.RawMessage `json:"content"`
		Refusal string          `json:"refusal"`
		Calls   []chatCall      `json:"tool_calls"`
	}
	if err := json.Unmarshal(choice.Message, &m); err != nil {
		return nil, &shapeError{err.Error()}
	}
	a.Text = cmp.Or(contentText(m.Content), m.Refusal)
	for _, c := range m.Calls {
		a.Calls = append(a.Calls, Call{c.ID, c.Function.Name, c.Function.arguments()})
	}
	return a, nil
}

// contentText returns the text of a content, which is a string or a list of parts.
func contentText(content json.RawMessage) string {
	var text string
	if json.Unmarshal(content, &text) == nil {
		return text
	}
	var parts []struct {
		Text string `json:"text"`
	}
	_ = json.Unmarshal(content, &parts) // other shapes have no text
	for _, p := range parts {
		text += p.Text
	}
	return text
}

type chatCall struct {
	Index    *int         `json:"index,omitempty"`
	ID       string       `json:"id,omitempty"`
	Type     string       `json:"type,omitempty"`
	Function chatFunction `json:"function"`
}

type chatFunction struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments,omitempty"` // a JSON string, or an object (Ollama)
}

func (f *chatFunction) arguments() json.RawMessage {
	var text string
	if json.Unmarshal(f.Arguments, &text) == nil {
		return json.RawMessage(text)
	}
	return f.Arguments
}

// Stream implements [Wire].
func (chat) Stream(text func(string)) Assembler {
	return &chatStream{text: text, texts: make(textMembers), other: make(map[string]json.RawMessage)}
}

// chatStream assembles chunks.
type chatStream struct {
	text     func(string)
	first    chatBody
	begun    bool
	finish   string
	content  strings.Builder
	texts    textMembers // other text members, such as reasoning_content
	other    map[string]json.RawMessage
	calls    []*chatPart
	usage    *chatUsage
	finished bool
}

// chatPart is a partially received call.
type chatPart struct {
	index     int
	call      chatCall
	arguments strings.Builder
}

// Add implements [Assembler].
func (s *chatStream) Add(_ string, data []byte) (done bool, err error) {
	if e := faultOf(data); e != nil {
		return false, e
	}
	var in chatBody
	if err := json.Unmarshal(data, &in); err != nil {
		return false, &shapeError{err.Error()}
	}
	if in.Usage != nil {
		s.usage = in.Usage
	}
	if !s.begun && len(in.Choices) > 0 {
		s.begun = true
		s.first = chatBody{ID: in.ID, Object: "chat.completion", Created: in.Created, Model: in.Model}
	}
	for _, choice := range in.Choices {
		if choice.Index != 0 {
			continue // only one choice is requested
		}
		if err := s.delta(choice.Delta); err != nil {
			return false, err
		}
		if choice.Finish != "" {
			s.finish, s.finished = choice.Finish, true
		}
	}
	return false, nil // usage follows the last choice
}

func (s *chatStream) delta(delta map[string]json.RawMessage) error {
	for _, name := range slices.Sorted(maps.Keys(delta)) {
		value := delta[name]
		var text string
		isText := json.Unmarshal(value, &text) == nil && string(value) != "null"
		switch {
		case name == "role":
		case name == "content" && isText:
			s.content.WriteString(text)
			s.text(text)
		case name == "tool_calls":
			var calls []chatCall
			if err := json.Unmarshal(value, &calls); err != nil {
				return &shapeError{err.Error()}
			}
			for i := range calls {
				s.call(&calls[i])
			}
		case isText:
			s.texts.add(name, text)
		case string(value) != "null":
			s.other[name] = value
		}
	}
	return nil
}

// isFollowedBy reports whether a delta without an id begins another call. Servers that give a call no
// index, or every call the same, send whole calls.
func (p *chatPart) isFollowedBy(piece *chatCall) bool {
	if piece.Function.Name == "" || p.call.Function.Name == "" {
		return false
	}
	return piece.Index == nil || json.Valid([]byte(p.arguments.String()))
}

// call adds a delta of a call. It belongs to the call with the same index, unless it has another id
// or begins a call: Ollama gives every call the index 0, and some servers send no index.
func (s *chatStream) call(piece *chatCall) {
	var to *chatPart
	index := 0
	if piece.Index != nil {
		index = *piece.Index
	}
	for i := len(s.calls) - 1; i >= 0 && to == nil; i-- {
		if s.calls[i].index == index || piece.Index == nil {
			to = s.calls[i]
		}
	}
	if to == nil || piece.ID != "" && to.call.ID != piece.ID || piece.ID == "" && to.isFollowedBy(piece) {
		to = &chatPart{index: index, call: chatCall{Type: "function"}}
		s.calls = append(s.calls, to)
	}
	if piece.ID != "" {
		to.call.ID = piece.ID
	}
	if piece.Type != "" {
		to.call.Type = piece.Type
	}
	if piece.Function.Name != "" && to.call.Function.Name != piece.Function.Name {
		to.call.Function.Name += piece.Function.Name
	}
	to.arguments.Write(piece.Function.arguments())
}

// Answer implements [Assembler].
func (s *chatStream) Answer() (*Answer, error) {
	if !s.finished {
		return nil, ErrTruncated
	}
	message := map[string]json.RawMessage{"role": json.RawMessage(`"assistant"`), "content": json.RawMessage("null")}
	maps.Copy(message, s.other)
	for name, text := range s.texts {
		message[name] = textOf(text.String())
	}
	if s.content.Len() > 0 || len(s.calls) == 0 {
		message["content"] = textOf(s.content.String())
	}
	if len(s.calls) > 0 {
		list := make([]chatCall, len(s.calls))
		for i, c := range s.calls {
			list[i] = c.call
			if list[i].ID == "" {
				list[i].ID = fmt.Sprintf("call_%d", i) // a result must be able to refer to it
			}
			list[i].Function.Arguments = textOf(c.arguments.String())
		}
		raw, err := encode(list)
		if err != nil {
			return nil, err
		}
		message["tool_calls"] = raw
	}
	raw, err := encode(message)
	if err != nil {
		return nil, err
	}
	whole := s.first
	whole.Choices, whole.Usage = []chatChoice{{Message: raw, Finish: s.finish}}, s.usage
	body, err := encode(whole)
	if err != nil {
		return nil, err
	}
	return chat{}.Read(body)
}

// encode encodes JSON without HTML escapes.
func encode(v any) (json.RawMessage, error) {
	b, err := plainjson.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("writing JSON for the model: %w", err)
	}
	return b, nil
}
