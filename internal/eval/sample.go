package eval

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
)

// Sample is one question with the tools that a model may choose from and the tools that it is
// expected to call.
type Sample struct {
	// ID is unique in a data set.
	ID string `json:"id"`
	// Category groups samples in reports; "" is shown as "all".
	Category string `json:"category,omitempty"`
	// Question is the question to the model in plain text. Messages is the whole conversation as
	// JSON, if the data set has one.
	Question string          `json:"question,omitempty"`
	Messages json.RawMessage `json:"messages,omitempty"`
	Tools    []Tool          `json:"tools,omitempty"`
	// Expected are the names of the tools that the answer must call. It is empty for a question
	// that needs no tool.
	Expected []string `json:"expected"`
	// AnyExpected means that a call of any of the expected tools is correct.
	AnyExpected bool `json:"any_expected,omitempty"`
	// Turns are the turns of a conversation whose calls are expected turn by turn. Question is the
	// first of them then, Messages are all, and Expected are the tools of all turns.
	Turns []Turn `json:"turns,omitempty"`
	// Labels are the expected calls with their arguments, if the data set has them.
	Labels []LabelledCall `json:"labels,omitempty"`
	// State is the argument of the tool that resets the state of a server before the calls of this
	// sample, if the sample has an initial state.
	State json.RawMessage `json:"state,omitempty"`
	// Check holds the data for the data set's own checker, such as the possible answers of BFCL.
	Check *Check `json:"check,omitempty"`
}

// Turn is the user's message in a turn of a conversation, and the names of the tools that the model
// must call in it. There are none for a turn that needs no tool.
type Turn struct {
	Question string   `json:"question"`
	Expected []string `json:"expected"`
}

// Expect adds a tool to the expected ones, unless it is among them.
func (s *Sample) Expect(name string) { s.Expected = appendNew(s.Expected, name) }

// Unoffered returns the expected tools that are not among the tools of the sample, usually because
// of a misspelled name. It returns nil if the sample has no tools, or if a call of another expected
// tool is enough.
func (s *Sample) Unoffered() (missing []string) {
	if len(s.Tools) == 0 {
		return nil
	}
	names := NewNames(s.Tools)
	for _, name := range s.Expected {
		_, known := names.Known(name)
		if !known && (s.Check == nil || !slices.Contains(s.Check.Hidden, name)) {
			missing = append(missing, name)
		}
	}
	if s.AnyExpected && len(missing) < len(s.Expected) {
		return nil
	}
	return missing
}

// Converses reports whether the sample is a conversation of several turns, so that an answer has
// the calls of each.
func (s *Sample) Converses() bool { return len(s.Turns) > 0 || s.Check != nil && s.Check.Turns > 0 }

// Tool is a tool that a model may choose.
type Tool struct {
	Name        string          `json:"name"`
	Server      string          `json:"server,omitempty"`
	Description string          `json:"description,omitempty"`
	Schema      json.RawMessage `json:"input_schema,omitempty"`
}

// LabelledCall is a call that the data set expects.
type LabelledCall struct {
	Name      string          `json:"name"`
	Server    string          `json:"server,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	// Similar are tools that the data set accepts instead of this one. The metrics of this package
	// do not.
	Similar []string `json:"similar_tools,omitempty"`
	// Turn is the turn of a conversation, counted from 0.
	Turn int `json:"turn,omitempty"`
}

// Check names a checker and holds its data.
type Check struct {
	// Kind is "bfcl" or "tau2".
	Kind string `json:"kind"`
	// Category is the category of the data set, which determines the rules of the checker.
	Category string `json:"category"`
	// Functions are the definitions from the data set. Answers are the possible answers of BFCL, or
	// the texts that an answer to tau2 must contain.
	Functions json.RawMessage `json:"functions,omitempty"`
	Answers   json.RawMessage `json:"answers,omitempty"`
	// Turns is the number of turns of a conversation that is checked after each turn, or 0 for any
	// other sample. Hidden are functions that the server has and the sample does not offer; they
	// may run, because the official checker runs them as well.
	Turns  int      `json:"turns,omitempty"`
	Hidden []string `json:"hidden,omitempty"`
	// Later maps functions that a model is offered only from a later turn to that turn.
	Later map[string]int `json:"later,omitempty"`
}

// Response is a model's answer to one sample.
type Response struct {
	// ID is the id of the sample.
	ID string `json:"id"`
	// Trial numbers the answers to the same sample, from 0.
	Trial int `json:"trial,omitempty"`
	// Text is the plain text of the model.
	Text string `json:"text,omitempty"`
	// Message is the response of the provider's API, or the assistant message or tool calls in it,
	// as JSON in the format of any provider that package format supports.
	Message json.RawMessage `json:"message,omitempty"`
	// Turns are the answers of a conversation of several turns, instead of Text and Message: for
	// each user turn, the model's output until it waited for the next one.
	Turns [][]Step `json:"turns,omitempty"`
	// Error is the reason why there is no answer.
	Error string `json:"error,omitempty"`
	// Request is the digest of the request and the model, if this program sent it.
	Request string `json:"request,omitempty"`
	// Usage counts the tokens, if the API reports them.
	Usage *Usage `json:"usage,omitempty"`
}

// Step is one output of a model within a turn, with Text and Message as in [Response].
type Step struct {
	Text    string          `json:"text,omitempty"`
	Message json.RawMessage `json:"message,omitempty"`
}

// Usage is the number of tokens of a request and its answer.
type Usage struct {
	Input  int64 `json:"input_tokens"`
	Output int64 `json:"output_tokens"`
}

// Add adds other tokens.
func (u *Usage) Add(other Usage) { u.Input, u.Output = u.Input+other.Input, u.Output+other.Output }

// Digest returns the SHA-256 of parts in hexadecimal with the prefix "sha256:". It depends on the
// boundaries of the parts.
func Digest(parts ...[]byte) string {
	whole := sha256.New()
	for _, part := range parts {
		sum := sha256.Sum256(part)
		whole.Write(sum[:])
	}
	return "sha256:" + hex.EncodeToString(whole.Sum(nil))
}
