package session

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"
)

// A server that was restarted answers the health check while a call is on its way to it.
func TestHealthCheckOfAForgottenSessionDoesNotEndItsCalls(t *testing.T) {
	s, spec := newRemoteServer(t, false)
	sessions := func() int {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.id
	}
	var called atomic.Bool
	restarted := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		first := r.Header.Get("Mcp-Session-Id") == "s1"
		switch {
		case first && bytes.Contains(body, []byte(`"tools/call"`)):
			called.Store(true)
			for sessions() < 2 && r.Context().Err() == nil {
				<-time.After(time.Millisecond)
			}
			w.WriteHeader(http.StatusNotFound)
		case first && called.Load():
			w.WriteHeader(http.StatusNotFound)
		default:
			s.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(restarted.Close)
	spec.URL = restarted.URL
	p := open(t, Config{Spec: spec, HealthEvery: 50 * time.Millisecond})
	must(t, p.call("odd", "{}"))
	if n := sessions(); !called.Load() || n != 2 {
		t.Errorf("the call was not sent in two sessions: there were %d", n)
	}
}
