package eval

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// Sample is one question with the tools that a model may choose from and those that it is
// expected to call.
type Sample struct {
	// ID is unique in a data set.
	ID string `json:"id"`
	// Category groups samples in reports; "" is shown as "all".
	Category string `json:"category,omitempty"`
	// Question is what the model is asked, in plain text. Messages is the whole conversation
	// where the data set has one, as JSON.
	Question string          `json:"question,omitempty"`
	Messages json.RawMessage `json:"messages,omitempty"`
	Tools    []Tool          `json:"tools,omitempty"`
	// Expected are the names of the tools that the answer must call; none for a question
	// that needs no tool.
	Expected []string `json:"expected"`
	// AnyExpected says that a call of any of the expected tools is right.
	AnyExpected bool `json:"any_expected,omitempty"`
	// Turns are those of a conversation whose calls are expected turn by turn. Then Question is
	// the first of them, Messages are all, and Expected are the tools of all turns.
	Turns []Turn `json:"turns,omitempty"`
	// Labels are the expected calls with their arguments, where the data set has them.
	Labels []LabelledCall `json:"labels,omitempty"`
	// State is the argument of the tool that resets the state of a server before the calls of
	// this sample, where they begin with a state of their own.
	State json.RawMessage `json:"state,omitempty"`
	// Check is what a checker of the data set's own needs, such as the possible answers of
	// BFCL.
	Check *Check `json:"check,omitempty"`
}

// Turn is what the user says in a turn of a conversation, and the names of the tools that the
// model must call until it waits for the next one; none for a turn that needs no tool.
type Turn struct {
	Question string   `json:"question"`
	Expected []string `json:"expected"`
}

// Converses says that the sample is a conversation of several turns, so that an answer has the
// calls of each.
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
	// Similar are tools that the data set accepts in place of this one. The metrics of this
	// package do not.
	Similar []string `json:"similar_tools,omitempty"`
	// Turn is the turn of a conversation, from 0.
	Turn int `json:"turn,omitempty"`
}

// Check names a checker and holds the data that it needs.
type Check struct {
	// Kind is "bfcl" or "tau2".
	Kind string `json:"kind"`
	// Category is the category of the data set, which tells the checker its rules.
	Category string `json:"category"`
	// Functions are the definitions as the data set has them, and Answers the possible
	// answers of BFCL, or the texts that an answer to tau2 must have.
	Functions json.RawMessage `json:"functions,omitempty"`
	Answers   json.RawMessage `json:"answers,omitempty"`
	// Turns is the number of turns of a conversation that is checked after each turn, 0 for a
	// sample that is no such conversation. Then Hidden are functions that the server has and
	// the sample does not offer: the official checker runs them, and so they may run.
	Turns  int      `json:"turns,omitempty"`
	Hidden []string `json:"hidden,omitempty"`
	// Later are the functions that a model is told of only from a turn on, with the turn.
	Later map[string]int `json:"later,omitempty"`
}

// Response is the answer of a model to one sample.
type Response struct {
	// ID is that of the sample.
	ID string `json:"id"`
	// Trial counts the answers to the same sample, from 0.
	Trial int `json:"trial,omitempty"`
	// Text is the plain text that the model wrote.
	Text string `json:"text,omitempty"`
	// Message is the answer of the provider's API, or the assistant message or the tool
	// calls in it, as JSON in the form of any provider that package format reads.
	Message json.RawMessage `json:"message,omitempty"`
	// Turns are the answers of a conversation of several turns in place of Text and Message:
	// for each turn of the user what the model wrote until it waited for the next one.
	Turns [][]Step `json:"turns,omitempty"`
	// Error says that there is no answer, and why.
	Error string `json:"error,omitempty"`
	// Request is the digest of what the model was asked, and of the model, where this program
	// asked it.
	Request string `json:"request,omitempty"`
	// Usage counts the tokens, where the API reports them.
	Usage *Usage `json:"usage,omitempty"`
}

// Step is one answer of a model within a turn, with Text and Message as in [Response].
type Step struct {
	Text    string          `json:"text,omitempty"`
	Message json.RawMessage `json:"message,omitempty"`
}

// Usage is the number of tokens of a request and its answer.
type Usage struct {
	Input  int64 `json:"input_tokens"`
	Output int64 `json:"output_tokens"`
}

// Digest is the SHA-256 of parts, in hexadecimal with the prefix "sha256:". The boundary of
// the parts counts.
func Digest(parts ...[]byte) string {
	whole := sha256.New()
	for _, part := range parts {
		sum := sha256.Sum256(part)
		whole.Write(sum[:])
	}
	return "sha256:" + hex.EncodeToString(whole.Sum(nil))
}
