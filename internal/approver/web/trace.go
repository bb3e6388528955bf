package web

import (
	"net/http"
	"strings"

	"github.com/callyard/callyard/internal/telemetry"
	"github.com/callyard/callyard/pkg/schema"
)

// traced serves a request in a span, as a child of the caller's span.
func (h *Handler) traced(w http.ResponseWriter, r *http.Request) {
	span := h.o.Traces.Begin(schema.Trace{Parent: r.Header.Get("Traceparent"), State: r.Header.Get("Tracestate")}, telemetry.Server, r.Method)
	defer span.End()
	span.Text(telemetry.KeyHTTPMethod, r.Method)
	r = r.WithContext(span.Carry(r.Context()))
	seen := &status{ResponseWriter: w}
	h.routes.ServeHTTP(seen, r)
	// The pattern of the router has low cardinality. It begins with the method.
	if _, route, found := strings.Cut(r.Pattern, " "); found {
		span.Rename(r.Method + " " + route)
		span.Text(telemetry.KeyHTTPRoute, route)
	}
	span.Answered(seen.code)
}

// status records the status of a response.
type status struct {
	http.ResponseWriter
	code int
}

// WriteHeader records the status.
func (s *status) WriteHeader(code int) {
	if s.code == 0 && code >= http.StatusOK {
		s.code = code
	}
	s.ResponseWriter.WriteHeader(code)
}

// Write records the status of a response without WriteHeader.
func (s *status) Write(p []byte) (int, error) {
	if s.code == 0 {
		s.code = http.StatusOK
	}
	return s.ResponseWriter.Write(p)
}

// Unwrap lets http.ResponseController reach the connection.
func (s *status) Unwrap() http.ResponseWriter { return s.ResponseWriter }
