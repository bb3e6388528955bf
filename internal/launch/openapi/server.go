package openapi

import (
	"bytes"
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

// freshFor is how long a document counts as just read.
const freshFor = time.Second

// Config says what a [Server] is. MaxResult is in bytes.
type Config struct {
	ID        string
	OpenAPI   config.OpenAPI
	Headers   map[string]string // sent with each request to the service
	MaxResult int
	Log       *slog.Logger // nil says nothing
}

// Server is a REST service with its operations as tools. It is an [adapt.Source].
type Server struct {
	cfg    Config
	log    *slog.Logger
	docs   *http.Client // for the document; nil where it is a file
	offers adapt.Kept[offer]

	mu      sync.Mutex // load holds it
	client  *http.Client
	base    *url.URL
	fetched *adapt.Fetched
}

// offer is what came of one document.
type offer struct {
	adapt.Offer
	text   []byte
	base   *url.URL
	client *http.Client
	byName map[string]*operation
}

// New returns the server. Nothing is read yet.
func New(cfg Config) *Server {
	s := &Server{cfg: cfg, log: cfg.Log}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.cfg.MaxResult <= 0 {
		s.cfg.MaxResult = 64 << 20
	}
	s.log = s.log.With("server", cfg.ID)
	s.offers.Fresh = freshFor
	s.offers.Failed = func(err error) {
		s.log.Warn("the OpenAPI document cannot be read again; the tools that are known stay", "error", err)
	}
	if o := &cfg.OpenAPI; o.BaseURL != "" {
		if u, err := url.Parse(strings.TrimRight(o.BaseURL, "/")); err == nil {
			s.setBase(u)
		}
	}
	if isWebAddress(cfg.OpenAPI.Document) {
		spec := launch.Spec{ID: cfg.ID, URL: cfg.OpenAPI.Document}
		// The service's own document may need its credentials; nobody else gets them.
		if s.base == nil || sameOrigin(s.base, cfg.OpenAPI.Document) {
			spec.Headers = cfg.Headers
		}
		s.docs = launch.HTTPClient(spec)
	}
	return s
}

// setBase says where the service is.
func (s *Server) setBase(base *url.URL) {
	if s.base != nil && s.base.String() == base.String() {
		return
	}
	if s.client != nil {
		s.client.CloseIdleConnections()
	}
	s.base = base
	s.client = launch.HTTPClient(launch.Spec{ID: s.cfg.ID, URL: base.String(), Headers: s.cfg.Headers})
	follow := s.client.CheckRedirect
	s.client.CheckRedirect = func(req *http.Request, via []*http.Request) error {
		if via[0].Method != http.MethodGet && via[0].Method != http.MethodHead {
			return http.ErrUseLastResponse
		}
		return follow(req, via)
	}
}

// CloseIdle ends connections that nobody uses.
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

// Offer returns the tools of the document as it is now. Where it cannot be read
// any more, what was there last stays.
func (s *Server) Offer(ctx context.Context) (*adapt.Offer, error) {
	o, err := s.offers.Get(ctx, s.load)
	if err != nil {
		return nil, err
	}
	return &o.Offer, nil
}

// load reads the document and returns what it offers: last itself where nothing
// has changed.
func (s *Server) load(ctx context.Context, last *offer) (*offer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text, err := s.document(ctx)
	if err != nil {
		return nil, err
	}
	if last != nil && bytes.Equal(text, last.text) {
		return last, nil
	}
	doc, err := parse(ctx, text)
	if err != nil {
		return nil, s.failed("The OpenAPI document of the server %q cannot be used: %w", s.cfg.ID, err)
	}
	if s.cfg.OpenAPI.BaseURL == "" {
		base, err := ownBase(doc, s.cfg.OpenAPI.Document)
		if err != nil {
			return nil, s.failed("The OpenAPI document of the server %q does not say where the service is: %w", s.cfg.ID, err)
		}
		s.setBase(base)
	}
	b := &builder{cfg: &s.cfg, doc: doc, base: s.base}
	if err := b.build(); err != nil {
		return nil, s.failed("The OpenAPI document of the server %q does not fit its entry: %w", s.cfg.ID, err)
	}
	next := &offer{text: text, base: s.base, client: s.client, byName: make(map[string]*operation, len(b.operations))}
	next.Notes = b.notes
	for _, note := range next.Notes {
		s.log.Warn("OpenAPI document", "note", note)
	}
	if doc.model.Info != nil {
		next.Title, next.Version = doc.model.Info.Title, doc.model.Info.Version
	}
	for _, op := range b.operations {
		next.byName[op.name] = op
		next.Tools = append(next.Tools, adapt.Tool{Name: op.name, From: op.method + " " + op.template, Raw: op.tool})
	}
	return next, nil
}

// document reads the text of the document.
func (s *Server) document(ctx context.Context) ([]byte, error) {
	name := s.cfg.OpenAPI.Document
	if s.docs != nil {
		f, err := adapt.Fetch(ctx, s.docs, s.cfg.ID, "The OpenAPI document", name, s.fetched, maxDocument)
		if err != nil {
			return nil, err
		}
		s.fetched = f
		return f.Body, nil
	}
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, s.failed("There is no OpenAPI document %q for the server %q; correct the path or create it.", name, s.cfg.ID)
	case err == nil && !info.Mode().IsRegular():
		return nil, s.failed("The OpenAPI document %q of the server %q is no file; correct the path.", name, s.cfg.ID)
	case err == nil && info.Size() > maxDocument:
		return nil, s.failed("The OpenAPI document %q of the server %q is larger than %d bytes; name a smaller one.", name, s.cfg.ID, maxDocument)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, s.failed("The OpenAPI document %q of the server %q cannot be read: %w.", name, s.cfg.ID, err)
	}
	return text, nil
}

func (s *Server) failed(format string, args ...any) error {
	return schema.Errorf(schema.KindServerFailed, format, args...)
}

// Call sends the request of an operation and returns what was answered.
func (s *Server) Call(ctx context.Context, tool string, arguments json.RawMessage) ([]byte, error) {
	o := s.offers.Last()
	if o == nil {
		var err error
		if o, err = s.offers.Get(ctx, s.load); err != nil {
			return nil, err
		}
	}
	op := o.byName[tool]
	if op == nil {
		return nil, adapt.ErrUnknownTool
	}
	req, err := op.request(ctx, arguments)
	if err != nil {
		return adapt.Failure(fmt.Sprintf("Nothing was sent: %v", err)), nil
	}
	resp, body, err := adapt.Do(o.client, req, s.cfg.MaxResult) //nolint:bodyclose // Do has closed it
	var ours *schema.Error
	if errors.As(err, &ours) {
		return adapt.Failure(ours.Detail), nil // a redirect that leads elsewhere
	}
	if err != nil {
		return nil, err
	}
	return adapt.Result(op.name, resp, body, op.wrap), nil
}

func isWebAddress(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != ""
}
