package callyard

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestANameIsOneSegmentOfThePath(t *testing.T) {
	var asked string
	door := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.RequestURI
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, "{}")
	}))
	defer door.Close()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	client, err := New(door.URL+"/below", "", WithHTTPClient(&http.Client{Transport: transport}))
	if err != nil {
		t.Fatal(err)
	}
	for name, path := range map[string]string{
		"a/b": "a%2Fb", "..": "%2E%2E", ".": "%2E", "zähl": "z%C3%A4hl", "a b?c#d": "a%20b%3Fc%23d", "x%2Fy": "x%252Fy", ".hidden": ".hidden",
	} {
		if _, err := client.GetServerWithResponse(t.Context(), name); err != nil || asked != "/below/servers/"+path {
			t.Errorf("%q is asked for as %s, %v", name, asked, err)
		}
	}
}
