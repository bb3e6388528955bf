package model

import (
	"encoding/json"
	"maps"
	"net/url"

	"github.com/callyard/callyard/internal/format"
)

// gemini implements [Wire] for generateContent.
type gemini struct{}

// Format implements [Wire].
func (gemini) Format() format.Format { return format.Gemini }

// User implements [Wire].
func (gemini) User(text string) json.RawMessage {
	return json.RawMessage(`{"role":"user","parts":[{"text":` + string(textOf(text)) + `}]}`)
}

// Request implements [Wire].
func (gemini) Request(model string, r *Request, stream bool) (path string, body []byte, err error) {
	type generation struct {
		MaxOutput int `json:"maxOutputTokens"`
	}
	in := struct {
		Contents   []json.RawMessage `json:"contents"`
		System     json.RawMessage   `json:"systemInstruction,omitempty"`
		Tools      json.RawMessage   `json:"tools,omitempty"`
		Generation *generation       `json:"generationConfig,omitempty"`
	}{Contents: r.Messages, Tools: someTools(r.Tools)}
	if r.System != "" {
		in.System = json.RawMessage(`{"parts":[{"text":` + string(textOf(r.System)) + `}]}`)
	}
	if r.MaxOutput > 0 {
		in.Generation = &generation{r.MaxOutput}
	}
	body, err = encode(in)
	path = "/v1beta/models/" + url.PathEscape(model) + ":generateContent"
	if stream {
		path = "/v1beta/models/" + url.PathEscape(model) + ":streamGenerateContent?alt=sse"
	}
	return path, body, err
}

type geminiBody struct {
	Candidates []struct {
		Content struct {
			Role  string            `json:"role"`
			Parts []json.RawMessage `json:"parts"`
		} `json:"content"`
		Finish string `json:"finishReason"`
	} `json:"candidates"`
	Feedback struct {
		Block string `json:"blockReason"`
	} `json:"promptFeedback"`
	Usage *struct {
		Prompt   int64 `json:"promptTokenCount"`
		Output   int64 `json:"candidatesTokenCount"`
		Thoughts int64 `json:"thoughtsTokenCount"`
		Cached   int64 `json:"cachedContentTokenCount"`
	} `json:"usageMetadata"`
}

// geminiPart holds the members of a part that are used. Other members are sent back unchanged.
type geminiPart struct {
	Text      *string `json:"text"`
	Thought   bool    `json:"thought"`
	Signature string  `json:"thoughtSignature"`
	Call      *struct {
		ID        string          `json:"id"`
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"args"`
	} `json:"functionCall"`
}

// Read implements [Wire].
func (gemini) Read(body []byte) (*Answer, error) {
	if e := faultOf(body); e != nil {
		return nil, e
	}
	var in geminiBody
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, &shapeError{err.Error()}
	}
	a := &Answer{Body: body}
	if u := in.Usage; u != nil {
		a.Usage = Usage{true, u.Prompt, u.Output + u.Thoughts, u.Cached}
	}
	if len(in.Candidates) == 0 {
		if in.Feedback.Block == "" {
			return nil, &shapeError{"it has no candidate"}
		}
		a.Stop = in.Feedback.Block
		return a, nil
	}
	a.Stop = in.Candidates[0].Finish
	var parts []json.RawMessage
	for _, raw := range in.Candidates[0].Content.Parts {
		var p geminiPart
		if err := json.Unmarshal(raw, &p); err != nil {
			return nil, &shapeError{err.Error()}
		}
		switch {
		case p.Call != nil:
			if len(p.Call.Arguments) == 0 {
				p.Call.Arguments = json.RawMessage("{}")
			}
			a.Calls = append(a.Calls, Call{p.Call.ID, p.Call.Name, p.Call.Arguments})
		case p.Text != nil && !p.Thought:
			a.Text += *p.Text
		}
		if !emptyPart(raw) {
			parts = append(parts, raw)
		}
	}
	if len(parts) == 0 {
		return a, nil // the API rejects an empty content
	}
	a.Messages = []json.RawMessage{json.RawMessage(`{"role":"model","parts":` + string(arrayOf(parts)) + `}`)}
	return a, nil
}

// emptyPart reports whether a part has no data, such as the text that ends a stream. It is not sent
// back: a part in a request must have data, and the official library omits it as well. A
// part with a signature is not empty.
func emptyPart(raw json.RawMessage) bool {
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil {
		return false
	}
	for name, value := range members {
		if name != "thought" && (name != "text" || string(value) != `""`) {
			return false
		}
	}
	return true
}

// Stream implements [Wire].
func (gemini) Stream(text func(string)) Assembler { return &geminiStream{text: text} }

// geminiStream assembles the parts of chunks.
type geminiStream struct {
	text    func(string)
	parts   []json.RawMessage
	last    *geminiPart                // the last part, if it is text that may be extended
	members map[string]json.RawMessage // of the latest chunks: usage, model version
	finish  string
	block   json.RawMessage
}

// Add implements [Assembler].
func (s *geminiStream) Add(_ string, data []byte) (done bool, err error) {
	if e := faultOf(data); e != nil {
		return false, e
	}
	var in geminiBody
	members := make(map[string]json.RawMessage)
	if err := json.Unmarshal(data, &in); err != nil {
		return false, &shapeError{err.Error()}
	}
	if err := json.Unmarshal(data, &members); err != nil {
		return false, &shapeError{err.Error()}
	}
	if in.Feedback.Block != "" {
		s.block = members["promptFeedback"]
	}
	delete(members, "candidates")
	if s.members == nil {
		s.members = members
	} else {
		maps.Copy(s.members, members)
	}
	if len(in.Candidates) == 0 {
		return false, nil
	}
	for _, raw := range in.Candidates[0].Content.Parts {
		if err := s.part(raw); err != nil {
			return false, err
		}
	}
	if in.Candidates[0].Finish != "" {
		s.finish = in.Candidates[0].Finish
	}
	return false, nil // usage may follow
}

// part adds a part. It merges pieces of text into one part. A part with a signature is kept
// unchanged, because the signature is tied to its position.
func (s *geminiStream) part(raw json.RawMessage) error {
	var p geminiPart
	if err := json.Unmarshal(raw, &p); err != nil {
		return &shapeError{err.Error()}
	}
	plain := p.Text != nil && p.Call == nil && p.Signature == ""
	if p.Text != nil && !p.Thought {
		s.text(*p.Text)
	}
	if plain && s.last != nil && s.last.Thought == p.Thought {
		joined := *s.last.Text + *p.Text
		s.last.Text = &joined
		thought := ""
		if p.Thought {
			thought = `,"thought":true`
		}
		s.parts[len(s.parts)-1] = json.RawMessage(`{"text":` + string(textOf(joined)) + thought + `}`)
		return nil
	}
	s.parts, s.last = append(s.parts, raw), nil
	if plain {
		s.last = &p
	}
	return nil
}

// Answer implements [Assembler].
func (s *geminiStream) Answer() (*Answer, error) {
	if s.finish == "" && s.block == nil {
		return nil, ErrTruncated
	}
	if s.finish != "" {
		s.members["candidates"] = json.RawMessage(`[{"content":{"parts":` + string(arrayOf(s.parts)) + `,"role":"model"},"finishReason":` + string(textOf(s.finish)) + `,"index":0}]`)
	}
	return gemini{}.Read(objectOf(s.members))
}
