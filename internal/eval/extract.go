package eval

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/callyard/callyard/internal/format"
)

// Level determines which tool calls in an answer count.
type Level string

const (
	// Strict counts calls in <tool_call> blocks whose body is a JSON object with a string "name",
	// and calls in the format of a provider's API.
	Strict Level = "strict"
	// Published counts the same calls as Strict. An answer in which only lenient extraction finds a
	// call has all metrics 0 and the failure type "format". The published figures were computed
	// with it.
	Published Level = "published"
	// Lenient counts every call that [format.Extract] finds, including repaired ones.
	Lenient Level = "lenient"
)

// Levels returns all levels.
func Levels() []Level { return []Level{Strict, Published, Lenient} }

// Call is a tool call in an answer.
type Call struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	// Turn is the turn of a conversation, counted from 0.
	Turn int `json:"turn,omitempty"`
}

// Extracted holds the calls found in an answer.
type Extracted struct {
	// Blocks is the number of <tool_call> blocks and of calls in the format of a provider's API.
	// GoodBlocks is the number of those that are a JSON object with a name.
	Blocks, GoodBlocks int
	// Calls are the calls of good blocks. Rescued are all calls that lenient extraction finds.
	Calls, Rescued []Call
}

const (
	blockBegin = "<tool_call>"
	blockEnd   = "</tool_call>"
)

// Extract finds the tool calls in an answer. Outside of tags, it finds only calls with a name of
// the sample. The time is proportional to the size of the answer.
func Extract(r *Response, tools []Tool, names *Names) Extracted {
	if r.Turns == nil {
		return extractOne(r, tools, names)
	}
	var all Extracted
	for turn, steps := range r.Turns {
		for i := range steps {
			x := extractOne(&Response{Text: steps[i].Text, Message: steps[i].Message}, tools, names)
			all.Blocks, all.GoodBlocks = all.Blocks+x.Blocks, all.GoodBlocks+x.GoodBlocks
			all.Calls = appendTurn(all.Calls, x.Calls, turn)
			all.Rescued = appendTurn(all.Rescued, x.Rescued, turn)
		}
	}
	return all
}

func appendTurn(all, calls []Call, turn int) []Call {
	for _, c := range calls {
		c.Turn = turn
		all = append(all, c)
	}
	return all
}

func extractOne(r *Response, tools []Tool, names *Names) Extracted {
	var x Extracted
	x.native(r.Message)
	x.Rescued = append(x.Rescued, x.Calls...)
	text := r.Text
	if text == "" && x.Blocks == 0 { // servers that do not parse calls leave them in the text of the message
		text = messageText(r.Message)
	}
	x.blocks(text)
	if strings.ContainsAny(text, "<[{`") {
		lookup := func(name string) ([]byte, bool) { return schemaOf(tools, names, name) }
		for _, f := range format.Extract(text, lookup) {
			if f.Err == nil && f.Name != "" {
				x.Rescued = append(x.Rescued, Call{Name: f.Name, Arguments: f.Arguments})
			}
		}
	}
	if len(x.Rescued) < len(x.Calls) { // format.Extract reads only a limited part of a text
		x.Rescued = x.Calls
	}
	return x
}

// native reads the calls in the format of a provider's API.
func (x *Extracted) native(message []byte) {
	if len(bytes.TrimSpace(message)) == 0 {
		return
	}
	f, err := format.Detect(message)
	if err != nil {
		return // an assistant message without tool calls
	}
	calls, err := f.Calls(message)
	if err != nil {
		x.Blocks++ // more calls than the limit
		return
	}
	for i := range calls {
		x.Blocks++
		if calls[i].Err == nil && calls[i].Name != "" {
			x.GoodBlocks++
			x.Calls = append(x.Calls, Call{Name: calls[i].Name, Arguments: calls[i].Arguments})
		}
	}
}

// blocks reads the <tool_call> blocks of a text.
func (x *Extracted) blocks(text string) {
	for {
		_, after, ok := strings.Cut(text, blockBegin)
		if !ok {
			return
		}
		x.Blocks++
		body, rest, closed := strings.Cut(after, blockEnd)
		if !closed {
			return
		}
		if call, ok := blockCall(body); ok {
			x.GoodBlocks++
			x.Calls = append(x.Calls, call)
		}
		text = rest
	}
}

// WithoutCalls returns a text without its good <tool_call> blocks that call the tool of that name. It
// returns the text unchanged if name is empty.
func WithoutCalls(text, name string) string {
	if name == "" {
		return text
	}
	var kept strings.Builder
	for {
		before, after, ok := strings.Cut(text, blockBegin)
		body, rest, closed := strings.Cut(after, blockEnd)
		if !ok || !closed {
			kept.WriteString(text)
			return kept.String()
		}
		kept.WriteString(before)
		if call, good := blockCall(body); !good || call.Name != name {
			kept.WriteString(blockBegin + body + blockEnd)
		}
		text = rest
	}
}

// blockCall reads the body of a <tool_call> block.
func blockCall(body string) (Call, bool) {
	var members map[string]json.RawMessage
	if json.Unmarshal([]byte(body), &members) != nil {
		return Call{}, false
	}
	var name string
	if raw := members["name"]; len(raw) == 0 || raw[0] != '"' || json.Unmarshal(raw, &name) != nil || strings.TrimSpace(name) == "" {
		return Call{}, false
	}
	return Call{Name: name, Arguments: members["arguments"]}, true
}
