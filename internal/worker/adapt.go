package worker

import (
	"log/slog"

	"github.com/callyard/callyard/internal/config"
	"github.com/callyard/callyard/internal/launch/adapt"
	"github.com/callyard/callyard/internal/launch/endpoint"
	"github.com/callyard/callyard/internal/launch/openapi"
	"github.com/callyard/callyard/internal/settings"
)

// adapted fills in what a server that speaks no MCP needs, where e is one.
func adapted(c *settings.Worker, e *config.ServerEntry, s *Served) {
	switch {
	case e.OpenAPI != nil:
		s.Adapt = func(log *slog.Logger) adapt.Source {
			return openapi.New(openapi.Config{ID: e.ID, OpenAPI: *e.OpenAPI, Headers: e.Headers, MaxResult: int(c.ResultBytes), Log: log})
		}
	case e.Endpoint != nil:
		s.Adapt = func(log *slog.Logger) adapt.Source {
			return endpoint.New(endpoint.Config{ID: e.ID, Endpoint: *e.Endpoint, Headers: e.Headers, MaxResult: int(c.ResultBytes), Log: log})
		}
	default:
		return
	}
	s.Session.Spec.URL, s.Session.Spec.Headers = adapt.Address, nil
	// It answers at once, but may have to fetch a document first.
	s.Session.ProbeTimeout = s.Session.StartTimeout
}
