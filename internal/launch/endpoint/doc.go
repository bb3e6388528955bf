// Package endpoint makes a server out of an HTTP endpoint that answers the tool
// calls of a model: it takes {"tool_calls": […]} as OpenAI's chat completions have
// them and answers with tool messages. Which tools there are stands in the
// configuration, or is fetched.
//
// It promises that each call is one request with one tool call, sent once and to
// the configured address alone; that the arguments inside it are the bytes that
// came; and that the text of the answer is the text of the result.
//
// It refuses redirects, streams, and answers that do not name the call they are
// for where there are several.
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
	"github.com/callyard/callyard/internal/launch"
	"github.com/callyard/callyard/internal/launch/adapt"
	"github.com/callyard/callyard/pkg/schema"
)

const (
	maxList  = 16 << 20
	freshFor = time.Second
)

// Config says what a [Server] is. MaxResult is in bytes.
type Config struct {
	ID        string
	Endpoint  config.ToolEndpoint
	Headers   map[string]string // sent with each request to the endpoint
	MaxResult int
	Log       *slog.Logger // nil says nothing
}

// Server is a tool endpoint. It is an [adapt.Source].
type Server struct {
	cfg    Config
	client *http.Client
	lists  *http.Client // for the list of tools; nil where it is configured
	offers adapt.Offers[names]
}

// names is what the endpoint calls the tool of a name.
type names map[string]string

// New returns the server. Nothing is read yet.
func New(cfg Config) *Server {
	s := &Server{cfg: cfg}
	s.offers.Text, s.offers.Server, s.offers.Log, s.offers.Make = "list of tools", cfg.ID, cfg.Log, s.read
	s.client = launch.HTTPClient(launch.Spec{ID: cfg.ID, URL: cfg.Endpoint.URL, Headers: cfg.Headers})
	s.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	address := cfg.Endpoint.ToolsURL
	if address == "" {
		s.offers.Fresh = math.MaxInt64 // what is configured stays
		s.offers.Read = func(context.Context) ([]byte, error) { return cfg.Endpoint.Tools, nil }
		return s
	}
	spec := launch.Spec{ID: cfg.ID, URL: address}
	if adapt.SameOrigin(cfg.Endpoint.URL, address) {
		spec.Headers = cfg.Headers
	}
	s.lists = launch.HTTPClient(spec)
	s.offers.Fresh = freshFor
	s.offers.Read = (&adapt.Document{Client: s.lists, Server: cfg.ID, Name: "The list of tools", Address: address, Max: maxList}).Fetch
	return s
}

// CloseIdle ends connections that nobody uses.
func (s *Server) CloseIdle() {
	s.client.CloseIdleConnections()
	if s.lists != nil {
		s.lists.CloseIdleConnections()
	}
}

// Offer returns the tools as they are now.
func (s *Server) Offer(ctx context.Context) (*adapt.Offer, error) { return s.offers.Offer(ctx) }

func (s *Server) read(_ context.Context, text []byte) (*adapt.Reading[names], error) {
	r, err := tools(text)
	if err != nil {
		return nil, schema.Errorf(schema.KindServerFailed, "The list of tools of the server %q cannot be used: %w", s.cfg.ID, err)
	}
	r.Title = "Tool endpoint of " + s.cfg.ID
	return r, nil
}

// Call sends one tool call and returns what was answered.
func (s *Server) Call(ctx context.Context, tool string, arguments json.RawMessage) ([]byte, error) {
	r, err := s.offers.Last(ctx)
	if err != nil {
		return nil, err
	}
	name, ok := r.Own[tool]
	if !ok {
		return nil, adapt.ErrUnknownTool
	}
	id := newCallID()
	body, err := adapt.Encode(map[string]any{"tool_calls": []any{map[string]any{
		"id": id, "type": "function", "function": map[string]any{"name": name, "arguments": string(arguments)},
	}}})
	if err != nil {
		return adapt.Failure("Nothing was sent: the arguments cannot be encoded as JSON."), nil
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.cfg.Endpoint.URL, bytes.NewReader(body))
	if err != nil {
		return nil, schema.Errorf(schema.KindServerFailed, "The address of the tool endpoint %q cannot be used; correct it.", s.cfg.ID)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "callyard")
	resp, text, err := adapt.Do(s.client, req, s.cfg.MaxResult) //nolint:bodyclose // Do has closed it
	if err != nil {
		return nil, err
	}
	if resp.StatusCode/100 != 2 {
		return adapt.Result(tool, resp, text, false), nil
	}
	m, err := pick(text, id)
	if err != nil {
		var why *unreadable
		if errors.As(err, &why) {
			return adapt.Failure("The endpoint accepted the call and returned an invalid answer: " + why.Error()), nil
		}
		return nil, err
	}
	return m.result(), nil
}

func newCallID() string {
	var b [12]byte
	_, _ = rand.Read(b[:]) // it never fails
	return "call_" + hex.EncodeToString(b[:])
}
