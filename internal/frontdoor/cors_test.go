package frontdoor

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestCORSAnswersPreflightsOfAllowedOriginsOnly(t *testing.T) {
	reached := 0
	h := withCORS([]string{"https://app.example.com"}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { reached++ }))
	ask := func(from string) http.Header {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodOptions, "http://door.example/servers", nil)
		r.Header.Set("Origin", from)
		r.Header.Set("Access-Control-Request-Method", "POST")
		r.Header.Set("Access-Control-Request-Headers", "authorization,content-type,mcp-protocol-version")
		h.ServeHTTP(w, r)
		return w.Header()
	}
	got := ask("https://app.example.com")
	if got.Get("Access-Control-Allow-Origin") != "https://app.example.com" || got.Get("Access-Control-Allow-Methods") != "POST" || !strings.Contains(got.Get("Access-Control-Allow-Headers"), "mcp-protocol-version") {
		t.Errorf("a listed origin: %v", got)
	}
	if got.Get("Access-Control-Allow-Credentials") != "" {
		t.Error("cookies are allowed")
	}
	if got := ask("https://evil.example"); got.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("an unlisted origin: %v", got)
	}
	if reached != 0 {
		t.Error("a preflight reached the API")
	}
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodPost, "http://door.example/servers", nil)
	r.Header.Set("Origin", "https://app.example.com")
	h.ServeHTTP(w, r)
	if reached != 1 || w.Header().Get("Access-Control-Allow-Origin") != "https://app.example.com" || !strings.Contains(w.Header().Get("Access-Control-Expose-Headers"), "Mcp-Session-Id") {
		t.Errorf("the request itself: %v", w.Header())
	}
}
