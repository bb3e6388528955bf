package worker_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/config"
	"github.com/callyard/callyard/internal/launch/attach/attachtest"
	"github.com/callyard/callyard/pkg/bus/bustest"
)

func TestAnEntryWithAWebSocketAddressServesCalls(t *testing.T) {
	var program attachtest.Program
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer k" {
			http.Error(w, "no", http.StatusUnauthorized)
			return
		}
		if a, err := program.Accept(w, r); err == nil {
			a.Wait()
		}
	}))
	t.Cleanup(server.Close)
	srv := bustest.Start(t)
	e, err := config.ParseServer("prices", json.RawMessage(fmt.Sprintf(`{"url":%q,"auth":{"bearer":"k"}}`, "ws"+strings.TrimPrefix(server.URL, "http"))))
	if err != nil {
		t.Fatal(err)
	}
	w := start(t, srv, "w", false, e)
	t.Cleanup(func() { stop(t, w) })
	router, cat := front(t, srv)
	await(t, cat, "the server", hasTools(cat, "prices"))
	if s, err := cat.Server("prices"); err != nil || s.Transport != config.TypeWebSocket {
		t.Errorf("%+v, %v", s, err)
	}
	if res, err := router.Do(t.Context(), echoCall("prices", "hi")); err != nil || string(res.Body) != `{"content":[],"structuredContent":{"text":"hi"}}` {
		t.Errorf("%+v, %v", res, err)
	}
}
