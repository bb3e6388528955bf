package model

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/callyard/callyard/internal/format"
)

// Request is one turn of a conversation.
type Request struct {
	System    string            // instructions; "" for none
	Messages  []json.RawMessage // in the shape of the wire, the oldest first
	Tools     json.RawMessage   // the value of "tools" as GET /tools?format= returns it; empty for none
	MaxOutput int               // tokens; 0: what the API or the wire has as its default
}

// Answer is what a model said.
type Answer struct {
	// Body is the answer as the API returns it without streaming. POST /tool-calls takes it.
	Body json.RawMessage
	// Messages belong behind the conversation that was asked with.
	Messages []json.RawMessage
	Text     string // for people, without thoughts
	Calls    []Call
	Stop     string // why it ended, in the words of the API
	Usage    Usage
}

// Call is a tool call that a model asks for.
type Call struct {
	ID        string          // "" where the API gives none
	Name      string          // of the tool, as the model wrote it
	Arguments json.RawMessage // as the model wrote them; not necessarily JSON
}

// Usage counts tokens. Reported is false where the API did not say.
type Usage struct {
	Reported bool  `json:"reported"`
	Input    int64 `json:"input_tokens"`
	Output   int64 `json:"output_tokens"`
	Cached   int64 `json:"cached_input_tokens"` // of Input
}

// Add adds other to u. The sum counts as reported while every part is.
func (u Usage) Add(other Usage) Usage {
	return Usage{u.Reported && other.Reported, u.Input + other.Input, u.Output + other.Output, u.Cached + other.Cached}
}

// Wire is the form in which an API wants conversations and gives answers.
type Wire interface {
	// Format is that of its tools, calls and results.
	Format() format.Format
	// User returns a message of the user.
	User(text string) json.RawMessage
	// Result returns a message that answers a call with a text.
	Result(c Call, text string, failed bool) json.RawMessage
	// Join puts results that belong to one answer together, as the API wants them.
	Join(results []json.RawMessage) []json.RawMessage
	// Split returns the definitions in a value of Tools, by name in their order, and Tools puts
	// definitions together again.
	Split(tools json.RawMessage) ([]Definition, error)
	Tools(definitions []Definition) json.RawMessage
	// Request returns the path behind the base URL and the body.
	Request(model string, r *Request, stream bool) (path string, body []byte, err error)
	// Read reads an answer that came whole.
	Read(body []byte) (*Answer, error)
	// Stream returns what puts a streamed answer together. text is given each piece of the
	// answer's text.
	Stream(text func(string)) Assembler
}

// Definition is the definition of a tool in the form of a wire.
type Definition struct {
	Name string
	Raw  json.RawMessage
}

// Assembler puts a streamed answer together.
type Assembler interface {
	// Add takes the data of one event. done says that the answer is whole.
	Add(name string, data []byte) (done bool, err error)
	// Answer returns the answer after the last event. An error says that the stream was cut.
	Answer() (*Answer, error)
}

// provider is where a model is reached, and how.
type provider struct {
	name   string
	wire   Wire
	base   string   // without a slash at its end; "" where it must be given
	keys   []string // environment variables that may have the key, the first counts
	header string   // for the key: "" is Authorization with Bearer
	// version is a header that each request has, as Name: value; "" for none.
	version string
	// loose says that models of the provider may write calls as text, or lose them in a stream.
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
	Name     string // of the model, in the words of the provider
}

// ParseSpec reads PROVIDER:NAME.
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

// Format returns that of the provider's API; "" for a provider that is not known.
func (s Spec) Format() format.Format {
	for _, p := range providers() {
		if p.name == s.Provider {
			return p.wire.Format()
		}
	}
	return ""
}

func (s Spec) String() string { return s.Provider + ":" + s.Name }

// baseURL checks the address of an API.
func baseURL(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", fmt.Errorf("the base URL %q is not an http or https address such as http://127.0.0.1:8000/v1", text)
	}
	return strings.TrimRight(text, "/"), nil
}

// textOf writes a text as JSON.
func textOf(s string) json.RawMessage {
	b, err := encode(s)
	if err != nil {
		return json.RawMessage(`""`) // a string can always be written
	}
	return b
}
