package openapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/callyard/callyard/internal/config"
	"github.com/callyard/callyard/internal/launch"
	"github.com/callyard/callyard/internal/launch/adapt"
	"github.com/callyard/callyard/pkg/schema"
)

// freshFor is the age below which a document is not read again.
const freshFor = time.Second

// Config configures a [Server]. MaxResult is in bytes.
type Config struct {
	ID         string
	OpenAPI    config.OpenAPI
	Headers    map[string]string // sent with each request to the service
	Auth       launch.Authorizer // adds the credential of each request; if nil, only Headers do
	AuthHeader string            // the header that Auth sets
	MaxResult  int
	Log        *slog.Logger // if nil, nothing is logged
}

// Server is a REST service whose operations are tools. It is an [adapt.Source].
type Server struct {
	cfg    Config
	docs   *http.Client // for the document; nil if it is a file
	offers adapt.Offers[documentTools]

	mu     sync.Mutex
	client *http.Client
	base   *url.URL
}

// documentTools is the result of reading one document.
type documentTools struct {
	client *http.Client
	byName map[string]*operation
}

// New returns the server. It does not read the document yet.
func New(cfg Config) *Server {
	s := &Server{cfg: cfg}
	s.offers.Text, s.offers.Server, s.offers.Log = "OpenAPI document", cfg.ID, cfg.Log
	s.offers.Fresh, s.offers.Read, s.offers.Make = freshFor, s.readFile, s.read
	if o := &cfg.OpenAPI; o.BaseURL != "" {
		if u, err := url.Parse(strings.TrimRight(o.BaseURL, "/")); err == nil {
			s.setBase(u)
		}
	}
	if address := cfg.OpenAPI.Document; config.IsWebAddress(address) {
		spec := launch.Spec{ID: schema.ServerID(cfg.ID), URL: address, URLKey: "openapi"}
		// The service's own document may need its credentials. No other origin gets them.
		if s.base == nil || adapt.SameOrigin(s.base.String(), address) {
			spec.Headers, spec.Auth = cfg.Headers, cfg.Auth
		}
		s.docs = launch.HTTPClient(spec)
		s.offers.Read = (&adapt.Document{Client: s.docs, Server: cfg.ID, Name: "The OpenAPI document", Address: address, Max: maxDocument}).Fetch
	}
	return s
}

// setBase sets the address of the service.
func (s *Server) setBase(base *url.URL) {
	if s.base != nil && s.base.String() == base.String() {
		return
	}
	if s.client != nil {
		s.client.CloseIdleConnections()
	}
	s.base = base
	s.client = launch.HTTPClient(launch.Spec{ID: schema.ServerID(s.cfg.ID), URL: base.String(), URLKey: "base_url", Headers: s.cfg.Headers, Auth: s.cfg.Auth})
	follow := s.client.CheckRedirect
	s.client.CheckRedirect = func(req *http.Request, via []*http.Request) error {
		if via[0].Method != http.MethodGet && via[0].Method != http.MethodHead {
			return http.ErrUseLastResponse
		}
		if err := follow(req, via); err != nil {
			return &redirected{err}
		}
		return nil
	}
}

// redirected is the error of a redirect that is not followed. The service has answered the request.
type redirected struct{ error }

// Unwrap returns the reason.
func (r *redirected) Unwrap() error { return r.error }

// CloseIdle closes idle connections.
func (s *Server) CloseIdle() {
	if s.docs != nil {
		s.docs.CloseIdleConnections()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.client != nil {
		s.client.CloseIdleConnections()
	}
}

// Offer returns the tools of the current document.
func (s *Server) Offer(ctx context.Context) (*adapt.Offer, error) { return s.offers.Offer(ctx) }

// read returns the tools of a document.
func (s *Server) read(ctx context.Context, text []byte) (*adapt.Reading[documentTools], error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	doc, err := parse(ctx, text)
	if err != nil {
		return nil, launch.Failed("The OpenAPI document of the server %q cannot be used: %w", s.cfg.ID, err)
	}
	if s.cfg.OpenAPI.BaseURL == "" {
		base, err := serviceURL(doc, s.cfg.OpenAPI.Document)
		if err != nil {
			return nil, launch.Failed("The OpenAPI document of server %q does not contain the URL of the service: %w", s.cfg.ID, err)
		}
		s.setBase(base)
	}
	b := &builder{cfg: &s.cfg, doc: doc, base: s.base}
	if err := b.build(); err != nil {
		return nil, launch.Failed("The OpenAPI document of server %q does not match its entry: %w", s.cfg.ID, err)
	}
	next := &adapt.Reading[documentTools]{Own: documentTools{client: s.client, byName: make(map[string]*operation, len(b.operations))}}
	next.Notes = b.notes
	if doc.model.Info != nil {
		next.Title, next.Version = doc.model.Info.Title, doc.model.Info.Version
	}
	for _, op := range b.operations {
		next.Own.byName[op.name] = op
		next.Tools = append(next.Tools, adapt.Tool{Name: op.name, From: op.method + " " + op.template, Raw: op.tool})
	}
	return next, nil
}

// readFile reads a document that is a file.
func (s *Server) readFile(context.Context) ([]byte, error) {
	name := s.cfg.OpenAPI.Document
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, launch.Failed("There is no OpenAPI document %q for the server %q; correct the path or create it.", name, s.cfg.ID)
	case err == nil && !info.Mode().IsRegular():
		return nil, launch.Failed("The OpenAPI document %q of server %q is not a file; correct the path.", name, s.cfg.ID)
	case err == nil && info.Size() > maxDocument:
		return nil, launch.Failed("The OpenAPI document %q of the server %q is larger than %d bytes; use a smaller one.", name, s.cfg.ID, maxDocument)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, launch.Failed("The OpenAPI document %q of the server %q cannot be read: %w.", name, s.cfg.ID, err)
	}
	return text, nil
}

// Call sends the request of an operation and returns the result.
func (s *Server) Call(ctx context.Context, tool string, arguments json.RawMessage) ([]byte, error) {
	r, err := s.offers.Last(ctx)
	if err != nil {
		return nil, err
	}
	op := r.Own.byName[tool]
	if op == nil {
		return nil, adapt.ErrUnknownTool
	}
	req, err := op.request(ctx, arguments)
	if err != nil {
		return adapt.Failure(fmt.Sprintf("Nothing was sent: %v", err)), nil
	}
	resp, body, err := adapt.Do(r.Own.client, req, s.cfg.MaxResult) //nolint:bodyclose // Do has closed it
	if answer, ok := errors.AsType[*redirected](err); ok {
		return adapt.Failure(schema.AsError(answer).Detail), nil
	}
	if err != nil {
		return nil, err // also if there is no credential for the request: then the service was not asked
	}
	return adapt.Result(op.name, resp, body, op.wrap), nil
}
