// Package endpoint turns an HTTP endpoint for tool calls of a model into a server. The endpoint
// accepts {"tool_calls": […]} in the format of OpenAI chat completions and returns tool messages.
// The list of tools is configured or fetched.
//
// Each call is sent once, in one request, to the configured address only. Its arguments are sent
// byte for byte, and the text of the response is the text of the result. A request has one call,
// or, if configured, several calls that arrived while others were in flight.
//
// The package does not follow redirects, does not support streams, and rejects responses to several
// calls that do not name their calls.
package endpoint

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"log/slog"
	"math"
	"net/http"
	"time"

	"github.com/callyard/callyard/internal/config"
	"github.com/callyard/callyard/internal/kit/plainjson"
	"github.com/callyard/callyard/internal/launch"
	"github.com/callyard/callyard/internal/launch/adapt"
	"github.com/callyard/callyard/pkg/schema"
)

const (
	maxList = 16 << 20
	// mostAnswers limits a response to several calls, in bytes, if the limit of a single result is
	// higher.
	mostAnswers = 128 << 20
	freshFor    = time.Second
)

// Config configures a [Server]. MaxResult is in bytes.
type Config struct {
	ID        string
	Endpoint  config.ToolEndpoint
	Headers   map[string]string // sent with each request to the endpoint
	Auth      launch.Authorizer // adds the credential of each request; if nil, only Headers do
	MaxResult int
	Log       *slog.Logger // if nil, nothing is logged
}

// Server is a tool endpoint. It is an [adapt.Source].
type Server struct {
	cfg    Config
	client *http.Client
	lists  *http.Client // for the list of tools; nil if it is configured
	offers adapt.Offers[names]
	gather *gatherer // nil if each call has its own request
}

// names maps tool names to the names that the endpoint uses.
type names map[string]string

// New returns the server. It does not read the tools yet.
func New(cfg Config) *Server {
	s := &Server{cfg: cfg}
	s.offers.Text, s.offers.Server, s.offers.Log, s.offers.Make = "list of tools", cfg.ID, cfg.Log, s.read
	s.client = launch.HTTPClient(launch.Spec{ID: schema.ServerID(cfg.ID), URL: cfg.Endpoint.URL, Headers: cfg.Headers, Auth: cfg.Auth})
	s.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	if n := cfg.Endpoint.CallsPerRequest; n > 1 {
		s.gather = &gatherer{post: s.post, server: cfg.ID, most: n, log: cfg.Log}
	}
	address := cfg.Endpoint.ToolsURL
	if address == "" {
		s.offers.Fresh = math.MaxInt64 // a configured list does not change
		s.offers.Read = func(context.Context) ([]byte, error) { return cfg.Endpoint.Tools, nil }
		return s
	}
	spec := launch.Spec{ID: schema.ServerID(cfg.ID), URL: address, URLKey: "tools_url"}
	if adapt.SameOrigin(cfg.Endpoint.URL, address) {
		spec.Headers, spec.Auth = cfg.Headers, cfg.Auth
	}
	s.lists = launch.HTTPClient(spec)
	s.offers.Fresh = freshFor
	s.offers.Read = (&adapt.Document{Client: s.lists, Server: cfg.ID, Name: "The list of tools", Address: address, Max: maxList}).Fetch
	return s
}

// CloseIdle closes idle connections.
func (s *Server) CloseIdle() {
	s.client.CloseIdleConnections()
	if s.lists != nil {
		s.lists.CloseIdleConnections()
	}
}

// Offer returns the current tools.
func (s *Server) Offer(ctx context.Context) (*adapt.Offer, error) { return s.offers.Offer(ctx) }

func (s *Server) read(_ context.Context, text []byte) (*adapt.Reading[names], error) {
	r, err := tools(text)
	if err != nil {
		return nil, schema.Errorf(schema.KindServerFailed, "The list of tools of the server %q cannot be used: %w", s.cfg.ID, err)
	}
	r.Title = "Tool endpoint of " + s.cfg.ID
	return r, nil
}

// Call sends one tool call and returns its result.
func (s *Server) Call(ctx context.Context, tool string, arguments json.RawMessage) ([]byte, error) {
	r, err := s.offers.Last(ctx)
	if err != nil {
		return nil, err
	}
	name, ok := r.Own[tool]
	if !ok {
		return nil, adapt.ErrUnknownTool
	}
	one := &waiting{id: newCallID(), tool: tool, name: name, arguments: arguments}
	if s.gather != nil {
		return s.gather.call(ctx, one)
	}
	resp, text, err := s.post(ctx, []*waiting{one}) //nolint:bodyclose // adapt.Do has closed it
	if err != nil {
		return nil, err
	}
	if resp.StatusCode/100 != 2 {
		return adapt.Result(tool, resp, text, false), nil
	}
	m, err := messageFor(text, one.id)
	if err != nil {
		if why, ok := errors.AsType[*unreadable](err); ok {
			return adapt.Failure("The endpoint accepted the call and returned an invalid answer: " + why.Error()), nil
		}
		return nil, err
	}
	return m.result(), nil
}

// post sends calls in one request and returns the response.
func (s *Server) post(ctx context.Context, calls []*waiting) (*http.Response, []byte, error) {
	list := make([]any, len(calls))
	for i, c := range calls {
		list[i] = map[string]any{"id": c.id, "type": "function", "function": map[string]any{"name": c.name, "arguments": string(c.arguments)}}
	}
	body, err := plainjson.Marshal(map[string]any{"tool_calls": list})
	if err != nil {
		return nil, nil, schema.Errorf(schema.KindServerFailed, "A call of the tool endpoint %q cannot be encoded as JSON; nothing was sent.", s.cfg.ID)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.cfg.Endpoint.URL, bytes.NewReader(body))
	if err != nil {
		return nil, nil, schema.Errorf(schema.KindServerFailed, "The address of the tool endpoint %q cannot be used; correct it.", s.cfg.ID)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "callyard")
	limit := s.cfg.MaxResult
	if len(calls) > 1 {
		limit = min(limit*len(calls), max(limit, mostAnswers))
	}
	return adapt.Do(s.client, req, limit)
}

func newCallID() schema.CallID {
	var b [12]byte
	_, _ = rand.Read(b[:]) // it cannot fail
	return schema.CallID("call_" + hex.EncodeToString(b[:]))
}
