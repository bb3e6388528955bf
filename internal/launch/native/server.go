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
	// Arguments is the JSON object that the caller sent. It must not be changed.
	Arguments json.RawMessage
	// Session is the same for all calls of one caller's conversation, and of one
	// caller where there is no conversation. It is empty where neither is known.
	Session string
	// Clock is the time, in RFC 3339, that the tool reads in place of the machine's, and Seed
	// a whole number in decimal for what it would draw at random; empty for the machine's.
	Clock, Seed string
	// Progress reports progress to the caller; total is 0 where it is not known. It is
	// nil where the caller did not ask for progress. It does not block and is safe for
	// concurrent use.
	Progress func(progress, total float64, message string)
}

// Result is the outcome of a call that ran.
type Result struct {
	// Body is a CallToolResult (MCP specification, server/tools): a JSON object. It
	// belongs to the caller of the tool.
	Body []byte
	// IsError repeats the isError member of Body.
	IsError bool
}

// Tool is one tool of a server.
type Tool struct {
	Name       string
	Definition json.RawMessage // a Tool object of the MCP specification
	// Call runs the tool. It is called from several goroutines at once. An error becomes
	// a result with isError whose text is the error. Call should return when ctx ends: a
	// call that does not keeps its place on the server until it returns.
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

// Add adds tools, all or none. It fails for a tool that is not complete or whose name the
// server has already.
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

// Remove removes the tools with the names, where the server has them. Running calls
// continue.
func (s *Server) Remove(names ...string) {
	s.mu.Lock()
	s.set(slices.DeleteFunc(slices.Clone(s.tools), func(t Tool) bool { return slices.Contains(names, t.Name) }))
}

// set replaces the list, unlocks and tells the watchers.
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

// Tools returns the current tools. The slice must not be changed.
func (s *Server) Tools() []Tool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tools
}

// Watch has changed called after each change of the list, which must not block. stop
// ends that.
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

// Call runs a tool. ok is false where the server has no tool of that name. A panic of the
// tool is a result with isError; panicked then holds its value and stack for the log.
func (s *Server) Call(ctx context.Context, name string, c *Call) (r Result, panicked error, ok bool) {
	s.mu.Lock()
	t := s.byName[name]
	s.mu.Unlock()
	if t == nil {
		return Result{}, nil, false
	}
	defer func() {
		if v := recover(); v != nil {
			r, panicked, ok = Failed("The tool failed: it panicked. Its log has the details."), fmt.Errorf("%v\n%s", v, debug.Stack()), true
		}
	}()
	r, err := t.Call(ctx, c)
	if err != nil {
		r = Failed(err.Error())
	}
	return r, nil, true
}

// check finds what a tool lacks.
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
