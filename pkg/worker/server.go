package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"github.com/callyard/callyard/internal/config"
	"github.com/callyard/callyard/internal/launch"
	"github.com/callyard/callyard/internal/launch/native"
	"github.com/callyard/callyard/internal/worker"
	"github.com/callyard/callyard/pkg/schema"
)

// Server is a named set of tools. Tools may be added and removed while it is served. It is
// safe for concurrent use once it is served; before that, use it from one goroutine.
type Server struct {
	name   string
	served worker.Served
	native *native.Server // nil for an MCP server

	mu     sync.Mutex
	faults []error      // registration errors before it is served
	log    *slog.Logger // set once it is served
}

// ServerOption configures a server.
type ServerOption func(*Server, *native.Info)

// InFlight sets the number of calls that the server runs concurrently, from 1 to 10,000. The
// default is the worker's in_flight, 128.
func InFlight(n int) ServerOption {
	return func(s *Server, _ *native.Info) { s.served.Session.InFlight = n }
}

// Timeout sets the timeout for calls that do not set their own. The default is the worker's
// call_timeout, one minute.
func Timeout(d time.Duration) ServerOption {
	return func(s *Server, _ *native.Info) { s.served.Session.CallTimeout = d }
}

// RiskLevel sets the risk level of the server's tools, which applies unless a policy rule sets
// another. Level 1 runs at once. Level 2 waits for an approval. Level 3 requires a container,
// which functions cannot provide, so calls are refused. By default the annotations of the
// tools decide.
func RiskLevel(level int) ServerOption {
	return func(s *Server, _ *native.Info) { s.served.Risk = level }
}

// ServerTitle sets the display name of the server.
func ServerTitle(title string) ServerOption {
	return func(_ *Server, i *native.Info) { i.Title = title }
}

// ServerVersion sets the version that clients see.
func ServerVersion(version string) ServerOption {
	return func(_ *Server, i *native.Info) { i.Version = version }
}

// Instructions sets the instructions for models on how to use the server's tools.
func Instructions(text string) ServerOption {
	return func(_ *Server, i *native.Info) { i.Instructions = text }
}

// ServerName sets the name under which [Serve] serves an MCP server. The default is the name
// that the server reports.
func ServerName(name string) ServerOption { return func(s *Server, _ *native.Info) { s.name = name } }

// NewServer returns a server without tools. name is the server's id in the fleet: 1 to 64
// printable characters without "/".
func NewServer(name string, options ...ServerOption) *Server {
	s := &Server{name: name}
	info := native.Info{Name: name, Version: "0.0.0"}
	for _, o := range options {
		o(s, &info)
	}
	var err error
	if s.native, err = native.New(info); err != nil {
		s.fault(err)
		return s
	}
	s.served.Session.Native = func(log *slog.Logger) (*native.Server, func(), error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.log = log
		return s.native, nil, nil
	}
	// One session serves all callers and has all slots.
	s.served.Session.Sessions = 1
	return s
}

// Name returns the server's id in the fleet.
func (s *Server) Name() string { return s.name }

// fault collects a registration error. Once the server is served, errors are logged instead,
// because no caller reads them.
func (s *Server) fault(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.log != nil {
		s.log.Error("a tool was not added", "server", s.name, "error", err.Error())
		return
	}
	s.faults = append(s.faults, fmt.Errorf("server %q: %w", s.name, err))
}

// logTo sets the logger of an MCP server that is about to be served. Other servers get theirs when
// they are opened.
func (s *Server) logTo(log *slog.Logger) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.native == nil {
		s.log = log.With("server", s.name)
	}
}

// panicked logs a panic of an MCP server.
func (s *Server) panicked(method string, value any) {
	s.mu.Lock()
	log := s.log
	s.mu.Unlock()
	if log != nil {
		log.Error("an MCP server of this program panicked", "method", method, "panic", fmt.Sprintf("%v\n%s", value, debug.Stack()))
	}
}

// finish returns the server in the form that a worker serves, and all registration errors.
func (s *Server) finish() (worker.Served, error) {
	if fault := config.ServerNameFault(s.name); fault != "" {
		s.fault(errors.New("its name " + fault))
	}
	if r := s.served.Risk; r < 0 || r > 3 {
		s.fault(fmt.Errorf("%d is not a risk level; use 1, 2 or 3", r))
	}
	if n := s.served.Session.InFlight; n < 0 || n > 10_000 {
		s.fault(fmt.Errorf("InFlight must be from 1 to 10,000, not %d", n))
	}
	s.served.Session.Spec = launch.Spec{ID: schema.ServerID(s.name), Type: typeNative}
	s.served.Entry = config.ServerEntry{ID: s.name, Type: typeNative, Risk: s.served.Risk, TrustAnnotations: true}
	s.served.TrustAnnotations = true // the author of the program wrote the annotations
	return s.served, errors.Join(s.faults...)
}

// typeNative is the transport that server lists show.
const typeNative = "native"

// Option configures a tool.
type Option = native.Option

// ReadOnly declares that the tool does not modify its environment (readOnlyHint). Without a
// policy such a tool runs at once, and its calls may be repeated after a failure.
func ReadOnly() Option { return native.ReadOnly() }

// Idempotent declares that repeating a call with the same arguments has no additional effect
// (idempotentHint). Its calls may be repeated after a failure.
func Idempotent() Option { return native.Idempotent() }

// Destructive declares that the tool may delete or overwrite data (destructiveHint).
func Destructive() Option { return native.Destructive(true) }

// OpenWorld declares that the tool interacts with external systems (openWorldHint).
func OpenWorld() Option { return native.OpenWorld(true) }

// Title sets the display name of the tool.
func Title(title string) Option { return native.Title(title) }

// InputSchema replaces the JSON Schema that is derived from the type of the arguments. It must
// have "type": "object".
func InputSchema(schema []byte) Option { return native.InputSchema(schema) }

// Result is a result that the tool builds itself; see [Text] and [Structured].
type Result = native.Result

// Text returns a result with one text block.
func Text(text string) Result { return native.Text(text) }

// Structured returns a result with structuredContent and the same JSON as text. object is
// a JSON object.
func Structured(object []byte) Result { return native.Structured(object) }

// Failed returns a result with isError and a text. Returning an error from the function has
// the same effect.
func Failed(text string) Result { return native.Failed(text) }

// Tool adds the function f as a tool of the server. The schemas are derived from its types.
//
// In is a struct, or a map with string keys. Arguments are decoded with encoding/json, and a
// "jsonschema" tag describes a field. Fields are required unless they have omitempty or
// omitzero, or are pointers. Integers may be written as 1.0 or 1e3. Out is the result: a struct
// or map becomes structuredContent with an outputSchema, a string becomes text, a [Result] is
// used unchanged, and any other type becomes the member "result" of structuredContent. An error,
// a panic, and a nil pointer to a struct with required fields become a result with isError.
//
// Registration errors are returned by [Worker.Run] and [Local]. Once the server is served,
// they are logged and the tool is not added.
//
// f is called from several goroutines concurrently. It should return when ctx ends, which
// happens when the caller cancels or the call times out.
func Tool[In, Out any](s *Server, name, description string, f func(ctx context.Context, in In) (Out, error), options ...Option) {
	t, err := native.Typed(name, description, func(ctx context.Context, c *native.Call, in In) (Out, error) {
		return f(withCall(ctx, c), in)
	}, options...)
	if f == nil {
		err = fmt.Errorf("tool %q has no function", name)
	}
	if err == nil && s.native == nil {
		err = fmt.Errorf("tool %q cannot be added: the tools are those of an MCP server", name)
	}
	if err == nil {
		err = s.native.Add(t)
	}
	if err != nil {
		s.fault(err)
	}
}

// Remove removes tools from the server and ignores unknown names. Running calls are not
// affected.
func (s *Server) Remove(names ...string) {
	if s.native != nil {
		s.native.Remove(names...)
	}
}

// Methods adds exported methods of receiver as tools. The name of a tool is the name of its
// method in snake_case. A method may take a context and one struct or map of arguments, and
// may return a value and an error, in this order. descriptions maps method names to
// descriptions. Methods without a description are left out, so that a new method does not
// become a tool by accident.
func Methods(s *Server, receiver any, descriptions map[string]string, options ...Option) {
	if s.native == nil {
		s.fault(errors.New("methods cannot be added: the tools are those of an MCP server"))
		return
	}
	if receiver == nil {
		s.fault(errors.New("methods cannot be added: the receiver is nil"))
		return
	}
	v := reflect.ValueOf(receiver)
	for name := range descriptions {
		if !v.MethodByName(name).IsValid() {
			s.fault(fmt.Errorf("%T has no exported method %s", receiver, name))
		}
	}
	for i := range v.NumMethod() {
		name := v.Type().Method(i).Name
		description, wanted := descriptions[name]
		if !wanted {
			continue
		}
		t, err := native.Method(config.SnakeCase(name), description, v.Method(i), options...)
		if err == nil {
			err = s.native.Add(t)
		}
		if err != nil {
			s.fault(fmt.Errorf("method %s: %w", name, err))
		}
	}
}

// callKey is the context key of the call.
type callKey struct{}

func withCall(ctx context.Context, c *native.Call) context.Context {
	if c.Progress == nil && c.Session == "" && c.Clock == "" && c.Seed == "" {
		return ctx
	}
	return context.WithValue(ctx, callKey{}, c)
}

// Progress reports progress to the caller of the tool that runs with ctx. total is 0 if it is
// unknown. Progress does nothing if the caller did not request progress.
func Progress(ctx context.Context, progress, total float64, message string) {
	if c, _ := ctx.Value(callKey{}).(*native.Call); c != nil && c.Progress != nil {
		c.Progress(progress, total, message)
	}
}

// Conversation returns an identifier that all calls of the caller's session share. Without a
// session, all calls of the caller share it. Use it as the key for state that a tool keeps
// between calls. It is "" outside a call.
func Conversation(ctx context.Context) string {
	c, _ := ctx.Value(callKey{}).(*native.Call)
	return cmp.Or(c, &native.Call{}).Session
}

// Clock returns the time in the training episode that the call belongs to
// (docs/how-to/train-with-environments.md). The time does not advance during the episode. ok is
// false if the call has no such time; use the machine's clock then.
func Clock(ctx context.Context) (now time.Time, ok bool) {
	c, _ := ctx.Value(callKey{}).(*native.Call)
	now, err := time.Parse(time.RFC3339, cmp.Or(c, &native.Call{}).Clock)
	return now, err == nil
}

// Seed returns the random seed of the episode. ok is false if the call has none.
func Seed(ctx context.Context) (seed int64, ok bool) {
	c, _ := ctx.Value(callKey{}).(*native.Call)
	seed, err := strconv.ParseInt(cmp.Or(c, &native.Call{}).Seed, 10, 64)
	return seed, err == nil
}
