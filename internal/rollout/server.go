package rollout

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/callyard/callyard/internal/authn"
	"github.com/callyard/callyard/internal/authn/scope"
	"github.com/callyard/callyard/internal/episode"
	"github.com/callyard/callyard/internal/kit/httpguard"
	"github.com/callyard/callyard/internal/problem"
	"github.com/callyard/callyard/internal/reward"
	"github.com/callyard/callyard/internal/telemetry"
	"github.com/callyard/callyard/pkg/schema"
)

// maxBody limits a request body and a WebSocket message, in bytes.
const maxBody = 32 << 20

// Options holds the dependencies of a server. All but Metrics are required.
type Options struct {
	Episodes *episode.Manager
	Keys     *authn.Keys
	Origin   *httpguard.Policy
	// Metrics serves /metrics. If nil, there is no such route.
	Metrics http.Handler
	Version string
}

// Server serves environments. It is safe for concurrent use. Close ends it.
type Server struct {
	o        Options
	rewards  reward.Service
	sessions sessions
	handler  http.Handler
	ctx      context.Context // canceled when the server closes
	stop     context.CancelFunc

	mu     sync.Mutex
	closed bool
	work   sync.WaitGroup // running connections, calls and the session sweep; added to under mu while not closed
}

// New returns a server. Close it after use.
func New(o Options) *Server {
	s := &Server{o: o}
	s.ctx, s.stop = context.WithCancel(context.Background())
	s.sessions.known = make(map[string]*session)
	s.handler = s.routes()
	s.work.Go(s.sweep)
	return s
}

// Close ends all connections, calls and sessions, and waits until they have ended. Requests that
// arrive later begin none.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.stop()
	s.work.Wait()
	s.sessions.closeAll()
}

// enter registers a connection or a call, which ends with s.work.Done. It returns false if the server
// is closed.
func (s *Server) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.work.Add(1)
	return true
}

func errClosing() error {
	return schema.Errorf(schema.KindUnavailable, "The environments are shutting down.")
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := s.o.Origin.Check(r); err != nil {
		problem.Write(w, err)
		return
	}
	s.handler.ServeHTTP(w, r)
}

// answer is a handler whose result is written as JSON. If both results are nil, the handler has
// written the response itself.
type answer func(w http.ResponseWriter, r *http.Request, who schema.Principal) (any, error)

// routes returns the handler of all routes. Routes of an environment start with its name. Without a
// name, they serve the first environment.
func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	open := func(pattern string, f answer) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { s.reply(w, r, schema.Principal{}, f) })
	}
	keyed := func(pattern string, f answer) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			who, err := s.o.Keys.Authenticate(r)
			if err != nil {
				problem.Write(w, err)
				return
			}
			s.reply(w, r, who, f)
		})
	}
	both := func(register func(string, answer), method, path string, f answer) {
		register(method+" "+path, f)
		register(method+" /{env}"+path, f)
	}
	healthy := s.ofEnvironment(func(*episode.Environment) any { return object{"status": "healthy"} })
	open("GET /health", healthy)
	open("GET /{env}/health", healthy)
	if s.o.Metrics != nil {
		keyed("GET /metrics", s.metrics)
	}
	s.openEnvRoutes(func(method, path string, f answer) { both(keyed, method, path, f) })
	gyms := gym{s}
	ors{s}.routes(open, func(pattern string, f answer) { keyed(pattern, gyms.orTool(pattern, f)) }, func(method, path string, f answer) {
		keyed(method+" "+path, gyms.orTool(method+" "+path, f))
		keyed(method+" /{env}"+path, f)
	})
	gyms.routes(keyed)
	keyed("POST /rewards", s.reward)
	keyed("GET /environments", s.watch)
	keyed("GET /{env}/episodes", s.watchOne)
	return mux
}

// reply writes the result of a handler. Errors are problem documents, like those of every HTTP
// interface of Callyard, so that a kind of error has the same status everywhere. Clients of all
// protocols read the member detail.
func (s *Server) reply(w http.ResponseWriter, r *http.Request, who schema.Principal, f answer) {
	if parent := r.Header.Get("Traceparent"); parent != "" {
		r = r.WithContext(telemetry.CarryTrace(r.Context(), schema.Trace{Parent: parent, State: r.Header.Get("Tracestate")}))
	}
	out, err := f(w, r, who)
	body, encoded := out.(json.RawMessage)
	switch {
	case err != nil:
		problem.Write(w, err)
		return
	case out == nil:
		return // the handler wrote the response
	case !encoded:
		if body, err = json.Marshal(out); err != nil {
			problem.Write(w, schema.Errorf(schema.KindInternal, "The answer cannot be written as JSON."))
			return
		}
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body) // the client may have disconnected
}

// read parses the JSON body of a request into v. An empty body leaves v unchanged.
func read(w http.ResponseWriter, r *http.Request, v any) error {
	body, err := readBody(w, r)
	if err != nil || len(body) == 0 {
		return err
	}
	if err := json.Unmarshal(body, v); err != nil {
		return unreadable("body", err)
	}
	return nil
}

// unreadable returns the error for JSON that cannot be read. It names the member with a value of a
// wrong type. what names the JSON, as in "body".
func unreadable(what string, err error) error {
	var mismatch *json.UnmarshalTypeError
	switch {
	case !errors.As(err, &mismatch):
		return schema.Errorf(schema.KindInvalidRequest, "The %s cannot be read as JSON: %w", what, err)
	case mismatch.Field == "":
		return schema.Errorf(schema.KindInvalidRequest, "The %s must be a JSON object, and is of the type %s.", what, mismatch.Value)
	}
	member := mismatch.Field[strings.LastIndexByte(mismatch.Field, '.')+1:] // without the name of a Go type
	return schema.Errorf(schema.KindInvalidRequest, "The member %s of the %s has a value of a wrong type: %s.", member, what, mismatch.Value)
}

func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var long *http.MaxBytesError
	switch {
	case errors.As(err, &long):
		return nil, schema.Errorf(schema.KindTooLarge, "The body has more than %d bytes.", maxBody)
	case err != nil:
		return nil, schema.Errorf(schema.KindInvalidRequest, "The body cannot be read: %w", err)
	}
	return body, nil
}

// environment returns the environment that the path names.
func (s *Server) environment(r *http.Request) (*episode.Environment, error) {
	return s.o.Episodes.Environment(r.PathValue("env"))
}

// ofEnvironment returns a handler that describes the environment that the path names.
func (s *Server) ofEnvironment(describe func(*episode.Environment) any) answer {
	return func(_ http.ResponseWriter, r *http.Request, _ schema.Principal) (any, error) {
		env, err := s.environment(r)
		if err != nil {
			return nil, err
		}
		return describe(env), nil
	}
}

// reward serves POST /rewards.
func (s *Server) reward(w http.ResponseWriter, r *http.Request, _ schema.Principal) (any, error) {
	body, err := readBody(w, r)
	if err != nil {
		return nil, err
	}
	out, err := s.rewards.Score(body)
	if _, told := errors.AsType[*schema.Error](err); told {
		return nil, err
	}
	if err != nil {
		return nil, schema.Errorf(schema.KindInvalidRequest, "%w", err)
	}
	return json.RawMessage(out), nil
}

// metrics serves GET /metrics. They name servers and tools, like those of a front door.
func (s *Server) metrics(w http.ResponseWriter, r *http.Request, who schema.Principal) (any, error) {
	if !who.Has(scope.ReadTools) || !who.Tenant.Is(schema.DefaultTenant) {
		return nil, schema.Errorf(schema.KindForbidden, "Only credentials of the default tenant with the scope %s can read the metrics.", scope.ReadTools)
	}
	s.o.Metrics.ServeHTTP(w, r)
	return nil, nil
}

// mayWatch returns an error for a principal that may not see the episodes of others.
func mayWatch(who *schema.Principal) error {
	if !who.Has(scope.Admin) || !who.Tenant.Is(schema.DefaultTenant) {
		return schema.Errorf(schema.KindForbidden, "Only credentials of the default tenant with the scope %s can see the episodes of all programs.", scope.Admin)
	}
	return nil
}

// watch serves GET /environments: the counts of each environment, as a [tally.List].
func (s *Server) watch(_ http.ResponseWriter, _ *http.Request, who schema.Principal) (any, error) {
	if err := mayWatch(&who); err != nil {
		return nil, err
	}
	return s.o.Episodes.Watch(), nil
}

// watchOne serves GET /{env}/episodes: the episodes and rewards of one environment, as a
// [tally.Detail].
func (s *Server) watchOne(_ http.ResponseWriter, r *http.Request, who schema.Principal) (any, error) {
	if err := mayWatch(&who); err != nil {
		return nil, err
	}
	env, err := s.environment(r)
	if err != nil {
		return nil, err
	}
	return s.o.Episodes.WatchOne(env), nil
}

// object is a JSON object to be written.
type object = map[string]any
