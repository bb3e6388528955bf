package endpoint

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/callyard/callyard/internal/kit/plainjson"
	"github.com/callyard/callyard/pkg/schema"
)

// message is a tool message. Endpoints use different names for its members.
type message struct {
	ID      schema.CallID   `json:"tool_call_id"`
	CallID  schema.CallID   `json:"call_id"`
	OwnID   json.RawMessage `json:"id"`
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
	Output  json.RawMessage `json:"output"`
	Result  json.RawMessage `json:"result"`
	Answer  json.RawMessage `json:"response"`
	Error   json.RawMessage `json:"error"`
	Failed  bool            `json:"is_error"`
	Failed2 bool            `json:"isError"`
}

// unreadable is the reason why a response cannot be used.
type unreadable struct{ why string }

// Error returns a sentence.
func (u *unreadable) Error() string { return u.why }

// listOf returns the messages of a response to calls with the ids: a message, an array of messages,
// or an object that contains one. It skips anything else.
func listOf(text []byte, ids ...schema.CallID) ([]*message, error) {
	text = bytes.TrimSpace(text)
	if !json.Valid(text) {
		return nil, &unreadable{"it is not JSON."}
	}
	all := messages(text)
	found := make([]*message, 0, len(all))
	for _, raw := range all {
		m := &message{}
		if json.Unmarshal(raw, m) != nil || m.Role != "" && m.Role != "tool" && m.Role != "function" {
			continue
		}
		m.normalize(ids)
		found = append(found, m)
	}
	return found, nil
}

// messageFor returns the message for the only call of a request.
func messageFor(text []byte, id schema.CallID) (*message, error) {
	messages, err := listOf(text, id)
	if err != nil {
		return nil, err
	}
	for _, m := range messages {
		if m.ID == id {
			return m, nil
		}
	}
	if m := messageWithoutID(messages); m != nil {
		return m, nil
	}
	return nil, &unreadable{"it contains no tool message for the call."}
}

// messageWithoutID returns the only message without a call id, or nil if there is none or more than one.
func messageWithoutID(messages []*message) (found *message) {
	for _, m := range messages {
		if m.ID != "" || m.Content == nil && m.Output == nil && m.Error == nil {
			continue
		}
		if found != nil {
			return nil
		}
		found = m
	}
	return found
}

// normalize moves values from alternative member names to the usual ones.
func (m *message) normalize(ids []schema.CallID) {
	var own schema.CallID
	if m.ID == "" {
		m.ID = m.CallID
	}
	if m.ID == "" && json.Unmarshal(m.OwnID, &own) == nil && slices.Contains(ids, own) { // otherwise it is the id of the message itself
		m.ID = own
	}
	for _, content := range []json.RawMessage{m.Result, m.Answer} {
		if isNull(m.Content) && isNull(m.Output) && !isNull(content) {
			m.Content = content
		}
	}
}

// messages returns the messages in a response: an array, an object with such an array, or a single
// one. Each may be in an object of its own, as its tool_response.
func messages(text json.RawMessage) []json.RawMessage {
	var list []json.RawMessage
	switch text[0] {
	case '[':
		_ = json.Unmarshal(text, &list) // it is a valid array
	case '{':
		var held map[string]json.RawMessage
		_ = json.Unmarshal(text, &held) // it is a valid object
		for _, key := range []string{"messages", "tool_messages", "tool_responses", "tool_outputs", "results", "outputs"} {
			if inner, ok := held[key]; ok && json.Unmarshal(inner, &list) == nil && list != nil {
				break
			}
		}
		if list == nil {
			list = []json.RawMessage{text}
		}
	}
	for i, raw := range list {
		list[i] = unwrapResponse(raw)
	}
	return list
}

// unwrapResponse returns the message in an object that holds it as tool_response, and any other message
// unchanged. If that member is a string, it is the content of the message.
func unwrapResponse(raw json.RawMessage) json.RawMessage {
	var held struct {
		ID       json.RawMessage `json:"tool_call_id"`
		Content  json.RawMessage `json:"content"`
		Response json.RawMessage `json:"tool_response"`
	}
	if json.Unmarshal(raw, &held) != nil || isNull(held.Response) || !isNull(held.Content) {
		return raw
	}
	var members map[string]json.RawMessage
	if isNull(held.ID) && json.Unmarshal(held.Response, &members) == nil {
		return held.Response
	}
	if isNull(held.ID) {
		held.ID = json.RawMessage(`""`)
	}
	return json.RawMessage(`{"tool_call_id":` + string(held.ID) + `,"content":` + string(held.Response) + `}`)
}

// part is one part of the content of a message.
type part struct {
	Type  string `json:"type"`
	Text  string `json:"text"`
	Image struct {
		URL string `json:"url"`
	} `json:"image_url"`
	Audio struct {
		Data   string `json:"data"`
		Format string `json:"format"`
	} `json:"input_audio"`
}

// result returns the message as a CallToolResult.
func (m *message) result() []byte {
	content, failed := m.Content, m.Failed || m.Failed2
	if isNull(content) {
		var output struct {
			Result json.RawMessage `json:"result"`
			Error  json.RawMessage `json:"error"`
		}
		if content = m.Output; json.Unmarshal(content, &output) == nil {
			switch { // the output wraps one of the two; it is not an object of the tool itself
			case !isNull(output.Result) && alone(content, "result", "error"):
				content = output.Result
			case !isNull(output.Error) && alone(content, "result", "error"):
				content, failed = output.Error, true
			}
		}
	}
	if isNull(content) && !isNull(m.Error) {
		content, failed = m.Error, true
	}
	out := struct {
		Content    []any           `json:"content"`
		Structured json.RawMessage `json:"structuredContent,omitempty"`
		Failed     bool            `json:"isError,omitempty"`
	}{Content: []any{}, Failed: failed}
	var text string
	var parts []json.RawMessage
	switch {
	case isNull(content):
	case json.Unmarshal(content, &text) == nil:
		out.Content = append(out.Content, textBlock(text))
		if plain := strings.TrimSpace(text); strings.HasPrefix(plain, "{") && json.Valid([]byte(plain)) {
			out.Structured = json.RawMessage(plain)
		}
	case json.Unmarshal(content, &parts) == nil && areParts(parts):
		for _, raw := range parts {
			out.Content = append(out.Content, block(raw))
		}
	default: // some endpoints return JSON itself instead of its text
		out.Content = append(out.Content, textBlock(string(content)))
		if content[0] == '{' {
			out.Structured = content
		}
	}
	// json.Marshal would encode the structured part again, so it is inserted verbatim.
	structured := out.Structured
	out.Structured = nil
	b, err := plainjson.Marshal(out)
	if err != nil {
		return []byte(`{"content":[],"isError":true}`)
	}
	if structured != nil {
		b = append(append(append(b[:len(b)-1], `,"structuredContent":`...), structured...), '}')
	}
	return b
}

// alone reports whether an object has no other members.
func alone(raw []byte, names ...string) bool {
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil {
		return false
	}
	for name := range members {
		if !slices.Contains(names, name) {
			return false
		}
	}
	return true
}

func isNull(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }

func textBlock(text string) any {
	return struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}{"text", text}
}

// areParts reports whether an array is content and not a value of the tool.
func areParts(list []json.RawMessage) bool {
	for _, raw := range list {
		var p part
		if json.Unmarshal(raw, &p) != nil || p.Type == "" {
			return false
		}
	}
	return len(list) > 0
}

// block turns a part into a content block. An unknown part stays as its text.
func block(raw json.RawMessage) any {
	var p part
	_ = json.Unmarshal(raw, &p) // areParts decoded it before
	media := struct {
		Type string `json:"type"`
		Data string `json:"data"`
		Kind string `json:"mimeType"`
	}{}
	switch p.Type {
	case "text", "input_text", "output_text":
		return textBlock(p.Text)
	case "image_url":
		if rest, ok := strings.CutPrefix(p.Image.URL, "data:"); ok {
			if kind, data, ok := strings.Cut(rest, ";base64,"); ok {
				media.Type, media.Data, media.Kind = "image", data, kind
				return media
			}
		}
		return textBlock(p.Image.URL)
	case "input_audio":
		media.Type, media.Data, media.Kind = "audio", p.Audio.Data, "audio/"+p.Audio.Format
		return media
	}
	return textBlock(string(raw))
}
