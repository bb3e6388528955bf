package native

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"

	"github.com/callyard/callyard/internal/kit/rawjson"
)

// Info is the server's description of itself (Implementation and instructions in the MCP
// specification). Name is required.
type Info struct {
	Name, Title, Version, Instructions string
}

// Call is one call of a tool.
type Call struct {
	// Arguments is the JSON object of the caller. Do not change it.
	Arguments json.RawMessage
	// Session is the same for all calls of one conversation, or of one caller if there is no
	// conversation. It is empty if neither is known.
	Session string
	// Clock is the time, in RFC 3339, that the tool should use instead of the system time. Seed is
	// a decimal integer for random numbers. They are empty for the system's own.
	Clock, Seed string
	// Progress reports progress to the caller; total is 0 if unknown. It is nil if the caller did
	// not ask for progress. It does not block and is safe for concurrent use.
	Progress func(progress, total float64, message string)
}

// Result is the outcome of a call that ran.
type Result struct {
	// Body is a CallToolResult (MCP specification, server/tools): a JSON object. The caller of the
	// tool owns it.
	Body []byte
	// IsError has the value of isError in Body.
	IsError bool
}

// Tool is one tool of a server.
type Tool struct {
	Name       string
	Definition json.RawMessage // a Tool object of the MCP specification
	// Call runs the tool. It is called concurrently. An error becomes a result with isError whose
	// text is the error. Call should return when ctx ends; until it returns, it occupies a slot of
	// the server.
	Call func(ctx context.Context, c *Call) (Result, error)
}

// Server is a server in this process. It is safe for concurrent use.
type Server struct {
	info Info

	mu       sync.Mutex
	tools    []Tool // replaced, never changed
	byName   map[string]*Tool
	watchers map[int]func()
	next     int
}

// New returns a server with the tools. It fails like [Server.Add].
func New(info Info, tools ...Tool) (*Server, error) {
	if info.Name == "" {
		return nil, fmt.Errorf("the server has no name")
	}
	s := &Server{info: info, byName: map[string]*Tool{}, watchers: map[int]func(){}}
	if err := s.Add(tools...); err != nil {
		return nil, err
	}
	return s, nil
}

// Info returns the server's description of itself.
func (s *Server) Info() Info { return s.info }

// Add adds all the tools or, after an error, none. It fails for an incomplete tool, and for a name
// that the server already has.
func (s *Server) Add(tools ...Tool) error {
	s.mu.Lock()
	next := slices.Clone(s.tools)
	for _, t := range tools {
		if err := check(&t); err != nil {
			s.mu.Unlock()
			return err
		}
		if slices.ContainsFunc(next, func(o Tool) bool { return o.Name == t.Name }) {
			s.mu.Unlock()
			return fmt.Errorf("server %q has a tool %q already", s.info.Name, t.Name)
		}
		next = append(next, t)
	}
	s.set(next)
	return nil
}

// Remove removes the tools with these names, if they exist. Running calls continue.
func (s *Server) Remove(names ...string) {
	s.mu.Lock()
	s.set(slices.DeleteFunc(slices.Clone(s.tools), func(t Tool) bool { return slices.Contains(names, t.Name) }))
}

// set replaces the list, unlocks and notifies the watchers.
func (s *Server) set(next []Tool) {
	s.tools = next
	s.byName = make(map[string]*Tool, len(next))
	for i := range next {
		s.byName[next[i].Name] = &next[i]
	}
	var told []func()
	for _, w := range s.watchers {
		told = append(told, w)
	}
	s.mu.Unlock()
	for _, w := range told {
		w()
	}
}

// Tools returns the current tools. Do not change the slice.
func (s *Server) Tools() []Tool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tools
}

// Watch calls changed after each change of the list. changed must not block. stop ends that.
func (s *Server) Watch(changed func()) (stop func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := s.next
	s.next++
	s.watchers[id] = changed
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.watchers, id)
	}
}

// Panicked is the text of the result of a tool that panicked.
const Panicked = "The tool failed: it panicked. Its log has the details."

// Call runs a tool. ok is false if the server has no tool with that name. A panic of the tool
// becomes a result with isError; panicked then holds its value and stack for the log.
func (s *Server) Call(ctx context.Context, name string, c *Call) (r Result, panicked error, ok bool) {
	s.mu.Lock()
	t := s.byName[name]
	s.mu.Unlock()
	if t == nil {
		return Result{}, nil, false
	}
	defer func() {
		if v := recover(); v != nil {
			r, panicked, ok = Failed(Panicked), fmt.Errorf("%v\n%s", v, debug.Stack()), true
		}
	}()
	r, err := t.Call(ctx, c)
	if err != nil {
		r = Failed(err.Error())
	}
	return r, nil, true
}

// check returns an error if a tool is incomplete.
func check(t *Tool) error {
	var schema, name []byte
	rawjson.Members(t.Definition, func(key string, value []byte) {
		switch key {
		case "inputSchema":
			schema = value
		case "name":
			name = value
		}
	})
	text, _ := rawjson.Text(name)
	switch {
	case t.Name == "":
		return fmt.Errorf("a tool has no name")
	case t.Call == nil:
		return fmt.Errorf("tool %q has no function", t.Name)
	case text != t.Name:
		return fmt.Errorf("tool %q has a definition with another name", t.Name)
	case !rawjson.IsObject(schema):
		return fmt.Errorf("tool %q has no inputSchema", t.Name)
	}
	return nil
}

// Text returns a result with one text.
func Text(text string) Result {
	b := append([]byte(`{"content":[{"type":"text","text":`), rawjson.AppendText(nil, text)...)
	return Result{Body: append(b, `}]}`...)}
}

// Failed returns a result with isError and one text.
func Failed(text string) Result {
	b := append([]byte(`{"content":[{"type":"text","text":`), rawjson.AppendText(nil, text)...)
	return Result{Body: append(b, `}],"isError":true}`...), IsError: true}
}

// Exited returns the result of a tool that ended its goroutine.
func Exited() Result {
	return Failed("The tool failed: it ended its goroutine (runtime.Goexit), as FailNow and Fatal of package testing do. Return an error instead.")
}

// Structured returns a result with structuredContent and, as the specification asks for,
// the same JSON as text. object is a JSON object.
func Structured(object json.RawMessage) Result {
	b := make([]byte, 0, 2*len(object)+64)
	b = append(b, `{"content":[{"type":"text","text":`...)
	b = rawjson.AppendText(b, string(object))
	b = append(b, `}],"structuredContent":`...)
	b = append(b, object...)
	return Result{Body: append(b, '}')}
}
