package telemetry

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
)

func TestProbesReportReadinessAndLiveness(t *testing.T) {
	var missing error
	p, err := ServeProbes("127.0.0.1:0", NewMetrics(), func() error { return missing }, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	get := func(path string) (int, string) {
		t.Helper()
		resp, err := http.Get("http://" + p.Addr() + path)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(body)
	}
	if code, _ := get("/readyz"); code != http.StatusOK {
		t.Errorf("ready is %d", code)
	}
	missing = errors.New("still starting: memory")
	if code, body := get("/readyz"); code != http.StatusServiceUnavailable || !strings.Contains(body, "memory") {
		t.Errorf("not ready is %d %q", code, body)
	}
	if resp, err := http.Get("http://" + p.Addr() + "/readyz"); err != nil || resp.Header.Get("Retry-After") != "1" {
		t.Errorf("it does not say when to come back: %v", err)
	} else if err := resp.Body.Close(); err != nil {
		t.Error(err)
	}
	if code, _ := get("/livez"); code != http.StatusOK {
		t.Errorf("alive is %d", code)
	}
	if code, body := get("/metrics"); code != http.StatusOK || !strings.Contains(body, "go_goroutines") {
		t.Errorf("metrics are %d", code)
	}
	http.DefaultClient.CloseIdleConnections()
	if err := p.Close(context.Background()); err != nil {
		t.Error(err)
	}
}
