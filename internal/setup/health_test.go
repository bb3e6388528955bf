package setup

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/settings"
)

func TestHealthCheckUsesTheListenAddress(t *testing.T) {
	ready := true
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/readyz" || !ready {
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = w.Write([]byte("NATS is gone"))
		}
	}))
	defer s.Close()
	port := s.URL[strings.LastIndexByte(s.URL, ':'):]
	for _, listen := range []string{"127.0.0.1" + port, "0.0.0.0" + port, port} {
		c := Config{File: settings.Defaults()}
		c.FrontDoor.Listen, c.Approver.Listen, c.Worker.Listen = listen, listen, listen
		for _, role := range []Role{FrontDoor, Approver, Worker} {
			ready = true
			if err := c.checkHealth(t.Context(), role); err != nil {
				t.Errorf("%s, role %d: %v", listen, role, err)
			}
			ready = false
			if err := c.checkHealth(t.Context(), role); err == nil || !strings.Contains(err.Error(), "NATS is gone") {
				t.Errorf("%s, role %d, not ready: %v", listen, role, err)
			}
		}
	}
	c := Config{File: settings.Defaults()}
	if err := c.checkHealth(t.Context(), Worker); err == nil || !strings.Contains(err.Error(), "worker.listen") {
		t.Errorf("a worker that listens nowhere: %v", err)
	}
	s.Close()
	c.FrontDoor.Listen = "127.0.0.1" + port
	if err := c.checkHealth(t.Context(), FrontDoor); err == nil {
		t.Error("nobody listens, and all is well")
	}
}
