package model

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/callyard/callyard/internal/format"
)

// Request is one request to the model.
type Request struct {
	System    string            // system prompt; "" means none
	Messages  []json.RawMessage // in the format of the wire, oldest first
	Tools     json.RawMessage   // the value of "tools" as returned by GET /tools?format=; empty means none
	MaxOutput int               // tokens; 0 means the default of the API or the wire
}

// Answer is an answer of the model.
type Answer struct {
	// Body is the response of the API in its non-streaming form. POST /tool-calls accepts it.
	Body json.RawMessage
	// Messages must be appended to the conversation.
	Messages []json.RawMessage
	Text     string // for people, without thoughts
	Calls    []Call
	Stop     string // stop reason of the API
	Usage    Usage
}

// Call is a tool call in an answer.
type Call struct {
	ID        string          // "" if the API provides none
	Name      string          // name of the tool, as the model wrote it
	Arguments json.RawMessage // as the model wrote them; may be invalid JSON
}

// MarshalJSON implements [json.Marshaler]. It writes arguments that are not JSON as a string, because
// such a call must not prevent the transcript from being written. Without arguments, Callyard runs a
// call with an empty object.
func (c Call) MarshalJSON() ([]byte, error) {
	type plain Call // without this method
	if len(c.Arguments) == 0 {
		c.Arguments = json.RawMessage("{}")
	}
	if !json.Valid(c.Arguments) {
		text, err := json.Marshal(string(c.Arguments))
		if err != nil {
			return nil, err
		}
		c.Arguments = text
	}
	return json.Marshal(plain(c))
}

// Usage counts tokens. Reported is false if the API did not report them.
type Usage struct {
	Reported bool  `json:"reported"`
	Input    int64 `json:"input_tokens"`
	Output   int64 `json:"output_tokens"`
	Cached   int64 `json:"cached_input_tokens"` // included in Input
}

// Add returns the sum of u and other. It counts as reported only if both are.
func (u Usage) Add(other Usage) Usage {
	return Usage{u.Reported && other.Reported, u.Input + other.Input, u.Output + other.Output, u.Cached + other.Cached}
}

// Wire implements the format of an API for conversations and answers.
type Wire interface {
	// Format returns the format of tools, calls and results.
	Format() format.Format
	// User returns a user message.
	User(text string) json.RawMessage
	// Result returns a message with the result of a call as text.
	Result(c Call, text string, failed bool) json.RawMessage
	// Join combines the results of one answer as the API requires.
	Join(results []json.RawMessage) []json.RawMessage
	// Split splits a value of [Request.Tools] into definitions and keeps their order. Tools is the
	// inverse.
	Split(tools json.RawMessage) ([]Definition, error)
	Tools(definitions []Definition) json.RawMessage
	// Request returns the path relative to the base URL, and the body.
	Request(model string, r *Request, stream bool) (path string, body []byte, err error)
	// Read reads an answer that was not streamed.
	Read(body []byte) (*Answer, error)
	// Stream returns an assembler for a streamed answer. It calls text with each piece of the
	// answer's text.
	Stream(text func(string)) Assembler
}

// Definition is the definition of a tool in the format of a wire.
type Definition struct {
	Name string
	Raw  json.RawMessage
}

// Assembler assembles a streamed answer.
type Assembler interface {
	// Add adds the data of one event. done reports whether the answer is complete.
	Add(name string, data []byte) (done bool, err error)
	// Answer returns the answer after the last event. It returns an error if the stream was truncated.
	Answer() (*Answer, error)
}

// provider describes an API endpoint.
type provider struct {
	name   string
	wire   Wire
	base   string   // without a trailing slash; "" if it must be configured
	keys   []string // environment variables for the key; the first one that is set applies
	header string   // for the key; "" means Authorization with Bearer
	// version is a header for every request, as Name: value. "" means none.
	version string
	// loose means that models of the provider may write calls as text, or lose them in a stream.
	loose bool
}

func providers() []provider {
	return []provider{
		{"openai", chat{}, "https://api.openai.com/v1", []string{"OPENAI_API_KEY"}, "", "", false},
		{"responses", responses{}, "https://api.openai.com/v1", []string{"OPENAI_API_KEY"}, "", "", false},
		{"anthropic", anthropic{}, "https://api.anthropic.com", []string{"ANTHROPIC_API_KEY"}, "X-Api-Key", anthropicVersion, false},
		{"gemini", gemini{}, "https://generativelanguage.googleapis.com", []string{"GEMINI_API_KEY", "GOOGLE_API_KEY"}, "X-Goog-Api-Key", "", false},
		{"ollama", chat{}, "http://127.0.0.1:11434/v1", []string{"OLLAMA_API_KEY"}, "", "", true},
		{"llamacpp", chat{}, "http://127.0.0.1:8080/v1", []string{"LLAMA_API_KEY"}, "", "", true},
		{"compatible", chat{}, "", []string{"MODEL_API_KEY"}, "", "", true},
	}
}

// Spec names a model.
type Spec struct {
	Provider string // such as "anthropic"
	Name     string // the provider's name of the model
}

// ParseSpec parses PROVIDER:NAME.
func ParseSpec(text string) (Spec, error) {
	name, model, ok := strings.Cut(text, ":")
	known := make([]string, 0, 8)
	for _, p := range providers() {
		known = append(known, p.name)
	}
	if !ok || model == "" || !slices.Contains(known, name) {
		return Spec{}, fmt.Errorf("the model %q is not PROVIDER:NAME with a provider of %s; an example is anthropic:claude-sonnet-4-5", text, strings.Join(known, ", "))
	}
	return Spec{name, model}, nil
}

// Format returns the format of the provider's API, or "" if the provider is unknown.
func (s Spec) Format() format.Format {
	if p := s.provider(); p.wire != nil {
		return p.wire.Format()
	}
	return ""
}

// provider returns the provider of the model. All its fields are zero if it is unknown.
func (s Spec) provider() provider {
	for _, p := range providers() {
		if p.name == s.Provider {
			return p
		}
	}
	return provider{}
}

func (s Spec) String() string { return s.Provider + ":" + s.Name }

// baseURL validates the base URL of an API and removes trailing slashes.
func baseURL(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", fmt.Errorf("the base URL %q is not an http or https address such as http://127.0.0.1:8000/v1", text)
	}
	return strings.TrimRight(text, "/"), nil
}

// textOf encodes a text as a JSON string.
func textOf(s string) json.RawMessage {
	b, err := encode(s)
	if err != nil {
		return json.RawMessage(`""`) // cannot happen: strings always encode
	}
	return b
}
