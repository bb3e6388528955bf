package modeltest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// Call is a tool call of the model.
type Call struct {
	ID        string
	Name      string
	Arguments string // JSON
}

// Turn is one answer of the model.
type Turn struct {
	Thought string // signed if the API signs thoughts
	Text    string
	Calls   []Call
	Stop    string // "" means the API's usual stop reason for such an answer
	Fault   *Fault // replaces the answer
	Quirk   Quirk  // deviation of the stream
	Piece   int    // bytes of a piece of text or arguments in a stream; 0 means 7
	Check   func(r *Request) error
}

// Quirk is a known deviation of servers from the API reference.
type Quirk int

// The quirks.
const (
	None       Quirk = iota
	SameIndex        // every call of a stream has the index 0 and arrives in one piece (Ollama)
	LosesCalls       // calls are lost in a stream (some versions of Ollama)
	CutStream        // the stream ends early, once
)

// Fault is an error response.
type Fault struct {
	Status     int // 0 means an error event in the stream
	Type       string
	RetryAfter string
}

// Script holds the answers of the model, one for each request. The last one repeats.
type Script []Turn

// Request holds the members of a request that the four APIs have in common.
type Request struct {
	Wire     string // openai, openai-responses, anthropic, gemini
	Stream   bool
	System   string
	Tools    []string // names of the tools
	Results  []Result // of the calls of the last answer, in their order
	Messages int
	Answers  int // of the model so far; not set for openai-responses
	Raw      json.RawMessage

	signed []string // signatures in their order, each with the signed part, as wire.signed returns them
}

// Result is the result of a call, as sent by the client.
type Result struct{ ID, Name, Text string }

// Server answers requests. It is safe for concurrent use, but supports only one conversation at a
// time.
type Server struct {
	mu      sync.Mutex
	script  Script
	at      int // the index of the next turn
	asked   []*Request
	refused []string
	last    *Turn    // the answer that the next request must include
	signed  []string // the signed parts that the next request must include
	cut     bool

	// ByHistory selects the turn by the number of answers in a request, so that a client that did
	// not store an answer receives the same one again. It does not work for openai-responses.
	ByHistory bool
}

// New returns a server with a script.
func New(script Script) *Server { return &Server{script: script} }

// Asked returns the requests that were answered.
func (s *Server) Asked() []*Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}

// Refused returns the reasons of the requests that were rejected with 400.
func (s *Server) Refused() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.refused)
}

// wire implements one API.
type wire interface {
	name() string
	// read parses a request and checks the rules that do not depend on the last answer.
	read(body []byte) (*Request, error)
	// whole returns an answer, stream its events.
	whole(t *Turn, n int) any
	stream(t *Turn, n int) (events []event)
	// signed returns the signature of an answer, with the part that it signs or its position, or
	// "" if there is none. Later requests must include it.
	signed(t *Turn, n int) string
}

// event is an event of a stream.
type event struct {
	name string
	data any
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	var api wire
	var asks struct{ Stream bool }
	_ = json.Unmarshal(body, &asks) // invalid JSON is rejected below
	stream := asks.Stream
	switch path := r.URL.Path; {
	case r.Method != http.MethodPost:
	case strings.HasSuffix(path, "/chat/completions"):
		api = chatWire{}
	case strings.HasSuffix(path, "/responses"):
		api = responsesWire{}
	case strings.HasSuffix(path, "/v1/messages"):
		api = anthropicWire{}
	case isGemini(path) && strings.HasSuffix(path, ":generateContent"):
		api, stream = geminiWire{}, false
	case isGemini(path) && strings.HasSuffix(path, ":streamGenerateContent"):
		api, stream = geminiWire{}, true
	}
	if api == nil {
		http.Error(w, `{"error":{"message":"no such path"}}`, http.StatusNotFound)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	request, err := api.read(body)
	if err == nil {
		err = checkNames(request.Tools)
	}
	if err == nil && s.ByHistory {
		s.at, s.last, s.signed = 0, nil, nil
		for s.at < request.Answers {
			s.recordAnswer(api, s.script[min(s.at, len(s.script)-1)])
		}
	}
	if err == nil {
		err = s.follows(api, request)
	}
	if err == nil {
		request.Wire, request.Stream, request.Raw = api.name(), stream, body
	}
	t := s.script[min(s.at, len(s.script)-1)]
	if err == nil && t.Check != nil {
		err = t.Check(request)
	}
	if err != nil {
		s.refused = append(s.refused, err.Error())
		writeJSON(w, http.StatusBadRequest, fault("invalid_request_error", err.Error()))
		return
	}
	s.answer(w, api, &t, stream, request)
}

// isGemini accepts both versions of the API: the official library for Python uses v1, that for Go
// v1beta.
func isGemini(path string) bool {
	return strings.Contains(path, "/v1beta/models/") || strings.Contains(path, "/v1/models/")
}

// follows checks a request against the last answer.
func (s *Server) follows(api wire, r *Request) error {
	if r.Messages == 1 {
		s.signed = nil // a new conversation starts
	}
	switch last := s.last; {
	case !slices.Equal(r.signed, s.signed):
		return errors.New("a signed part of an answer is missing, changed, or in another place")
	case last != nil && len(last.Calls) == 0 && len(r.Results) == 0:
		return nil
	default:
		return checkResults(last, r.Results, api.name() != "gemini" || geminiIDs(s.at-1))
	}
}

// recordAnswer records t as the last answer.
func (s *Server) recordAnswer(api wire, t Turn) {
	s.last = &t
	if part := api.signed(&t, s.at); part != "" {
		s.signed = append(s.signed, part)
	}
	s.at++
}

// answer writes the next answer of the script.
func (s *Server) answer(w http.ResponseWriter, api wire, t *Turn, stream bool, request *Request) {
	n := s.at
	if f := t.Fault; f != nil && f.Status != 0 {
		s.at++
		if f.RetryAfter != "" {
			w.Header().Set("Retry-After", f.RetryAfter)
		}
		writeJSON(w, f.Status, fault(f.Type, "not now"))
		return
	}
	if !stream {
		s.asked = append(s.asked, request)
		s.recordAnswer(api, *t)
		writeJSON(w, http.StatusOK, api.whole(t, n))
		return
	}
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	if t.Fault != nil {
		s.at++
		writeEvent(w, event{"error", fault(t.Fault.Type, "not now")})
		return
	}
	given := *t
	if t.Quirk == LosesCalls {
		given.Calls = nil
	}
	events := api.stream(&given, n)
	if t.Quirk == CutStream && !s.cut {
		s.cut = true
		events = events[:len(events)/2]
	} else {
		s.cut = false
		if t.Quirk != LosesCalls {
			s.asked = append(s.asked, request)
			s.recordAnswer(api, *t)
		}
	}
	for _, e := range events {
		writeEvent(w, e)
	}
}

// fault returns an error in the form of Anthropic, which has the members that the others read.
func fault(kind, message string) any {
	return map[string]any{"type": "error", "error": map[string]any{"type": kind, "message": message}}
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

func writeEvent(w io.Writer, e event) {
	data, ok := e.data.(string)
	if !ok {
		b, err := json.Marshal(e.data)
		if err != nil {
			panic(err) // cannot happen: this package builds the data
		}
		data = string(b)
	}
	if e.name != "" {
		_, _ = fmt.Fprintf(w, "event: %s\n", e.name)
	}
	_, _ = fmt.Fprintf(w, "data: %s\n\n", data)
}

// pieces splits a text into pieces like a stream, but not within a character.
func pieces(text string, size int) (all []string) {
	if size <= 0 {
		size = 7
	}
	from := 0
	for i := range text {
		if i-from >= size {
			all, from = append(all, text[from:i]), i
		}
	}
	if from < len(text) {
		all = append(all, text[from:])
	}
	return all
}

// textOf returns the text of a content, which is a string or a list of parts.
func textOf(content json.RawMessage) (text string) {
	if json.Unmarshal(content, &text) == nil {
		return text
	}
	var parts []struct{ Text string }
	_ = json.Unmarshal(content, &parts) // other shapes have no text
	for _, p := range parts {
		text += p.Text
	}
	return text
}

// checkNames rejects tool names that the vendors reject.
func checkNames(names []string) error {
	seen := map[string]bool{}
	for _, n := range names {
		if len(n) == 0 || len(n) > 64 || strings.Trim(n, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") != "" {
			return fmt.Errorf("tools: the name %q does not match ^[a-zA-Z0-9_-]{1,64}$", n)
		}
		if seen[n] {
			return fmt.Errorf("tools: the name %q is there twice", n)
		}
		seen[n] = true
	}
	return nil
}

// checkResults checks that the results match the calls of the last answer.
func checkResults(last *Turn, results []Result, byID bool) error {
	if last == nil {
		if len(results) > 0 {
			return fmt.Errorf("messages: there are results without calls")
		}
		return nil
	}
	want, got := map[string]int{}, map[string]int{}
	for _, c := range last.Calls {
		if byID {
			want[c.ID]++
		} else {
			want[c.Name]++
		}
	}
	for _, r := range results {
		if byID {
			got[r.ID]++
		} else {
			got[r.Name]++
		}
	}
	for k, n := range want {
		if got[k] != n {
			return fmt.Errorf("messages: the call %s has %d results directly behind it, not %d", k, got[k], n)
		}
	}
	for k := range got {
		if want[k] == 0 {
			return fmt.Errorf("messages: there is a result of %s, which was not called", k)
		}
	}
	return nil
}
