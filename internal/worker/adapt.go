package worker

import (
	"fmt"
	"log/slog"

	"github.com/callyard/callyard/internal/config"
	"github.com/callyard/callyard/internal/hub"
	"github.com/callyard/callyard/internal/launch/adapt"
	"github.com/callyard/callyard/internal/launch/endpoint"
	"github.com/callyard/callyard/internal/launch/native"
	"github.com/callyard/callyard/internal/launch/openapi"
	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/internal/upstream"
	"github.com/callyard/callyard/pkg/schema"
)

// adapted configures a server that does not speak MCP, if e is one.
func adapted(c *settings.Worker, e *config.ServerEntry, s *Served) {
	switch {
	case e.OpenAPI != nil:
		s.Adapt = func(log *slog.Logger) adapt.Source {
			return openapi.New(openapi.Config{ID: e.ID, OpenAPI: *e.OpenAPI, Headers: e.Headers, Auth: upstream.New(schema.ServerID(e.ID), e.OpenAPI.BaseURL, e.Auth), AuthHeader: authHeader(e), MaxResult: int(c.ResultBytes), Log: log})
		}
	case e.Endpoint != nil:
		s.Adapt = func(log *slog.Logger) adapt.Source {
			return endpoint.New(endpoint.Config{ID: e.ID, Endpoint: *e.Endpoint, Headers: e.Headers, Auth: upstream.New(schema.ServerID(e.ID), e.Endpoint.URL, e.Auth), MaxResult: int(c.ResultBytes), Log: log})
		}
	default:
		return
	}
	s.Session.Spec.URL, s.Session.Spec.Headers, s.Session.Spec.Auth = adapt.Address, nil, nil
	// It answers at once, but may have to fetch a document first.
	s.Session.ProbeTimeout = s.Session.StartTimeout
}

// builtin configures a built-in server, if e is one. It opens the server once, so that invalid
// settings are found before the worker starts.
func builtin(e *config.ServerEntry, s *Served) error {
	b := e.Builtin
	if b == nil {
		return nil
	}
	open := func(*slog.Logger) (*native.Server, func(), error) {
		return hub.Open(b.Name, hub.Settings{Roots: b.Roots, Allow: b.Allow, Engine: b.Engine, EngineURL: b.EngineURL, APIKey: b.APIKey})
	}
	_, closeServer, err := open(nil)
	if err != nil {
		return fmt.Errorf("server %q: %w", e.ID, err)
	}
	closeServer()
	s.Session.Native = open
	// One session with all places serves all callers.
	s.Session.Sessions, s.Session.InFlight = 1, s.Session.Sessions*s.Session.InFlight
	s.TrustAnnotations = true // the annotations are ours
	return nil
}

// authHeader returns the name of the header for the credential of a server, or "" if it has none.
func authHeader(e *config.ServerEntry) string {
	if e.Auth == nil {
		return ""
	}
	return e.Auth.Header
}
