package launch

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/callyard/callyard/pkg/schema"
)

func testClient(t *testing.T, spec Spec) *http.Client {
	t.Helper()
	client := HTTPClient(spec)
	t.Cleanup(client.CloseIdleConnections)
	return client
}

func fetch(t *testing.T, client *http.Client, url string) (string, error) {
	t.Helper()
	resp, err := client.Get(url)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	return readAll(t, resp.Body), nil
}

func TestHeadersGoToTheServerOnEachRequest(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Header.Get("Authorization")+" "+r.Header.Get("X-Other")+" "+r.Host)
	}))
	defer server.Close()
	client := testClient(t, Spec{ID: "s", URL: server.URL + "/mcp", Headers: map[string]string{"authorization": "Bearer k", "host": "tools.example"}})
	req, err := http.NewRequest(http.MethodGet, server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "of the caller")
	req.Header.Set("X-Other", "kept")
	for range 2 {
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if got := readAll(t, resp.Body); got != "Bearer k kept tools.example" {
			t.Errorf("got %q", got)
		}
		resp.Body.Close()
	}
	if req.Header.Get("Authorization") != "of the caller" {
		t.Error("the request was changed")
	}
}

func TestRedirectsToOtherHostsAreNotFollowed(t *testing.T) {
	var strayed atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { strayed.Add(1) }))
	defer other.Close()
	mux := http.NewServeMux()
	mux.Handle("/away", http.RedirectHandler(other.URL+"/x", http.StatusTemporaryRedirect))
	mux.Handle("/loop", http.RedirectHandler("/loop", http.StatusTemporaryRedirect))
	mux.Handle("/see", http.RedirectHandler("/", http.StatusSeeOther))
	mux.Handle("/near", http.RedirectHandler("/", http.StatusTemporaryRedirect))
	mux.HandleFunc("/{$}", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = w.Write(append([]byte(r.Header.Get("Authorization")+" "+r.Method+" "), body...))
	})
	server := httptest.NewServer(mux)
	defer server.Close()
	client := testClient(t, Spec{ID: "s", URL: server.URL, Headers: map[string]string{"Authorization": "k"}})
	post := func(url string) (string, error) {
		resp, err := client.Post(url, "application/json", strings.NewReader("{}"))
		if err != nil {
			return "", err
		}
		defer resp.Body.Close()
		return readAll(t, resp.Body), nil
	}

	for url, want := range map[string]string{
		server.URL + "/away": `not followed. If this is correct, set "url" to the new address.`,
		server.URL + "/loop": "more than 5 times",
		server.URL + "/see":  "would change it to a GET",
		other.URL:            "was not sent",
		strings.Replace(server.URL, "http:", "https:", 1): "was not sent",
	} {
		_, err := post(url)
		var e *schema.Error
		if !errors.As(err, &e) || e.Kind != schema.KindServerFailed || !strings.Contains(e.Detail, want) {
			t.Errorf("%s: %v", url, err)
		}
	}
	if n := strayed.Load(); n != 0 {
		t.Errorf("%d requests went to the other host", n)
	}
	if got, err := post(server.URL + "/near"); err != nil || got != "k POST {}" {
		t.Errorf("a redirect to the same host: %q, %v", got, err)
	}
}

func TestUnusableServerURLIsReported(t *testing.T) {
	for _, url := range []string{"", "tools.example/mcp", "ftp://tools.example", "http://", "http://[::1", "unix:///x"} {
		_, err := fetch(t, testClient(t, Spec{ID: "s", URL: url}), "http://127.0.0.1:1/")
		if err == nil || !strings.Contains(err.Error(), "invalid address") {
			t.Errorf("%q: %v", url, err)
		}
	}
}

func TestOriginIsNormalized(t *testing.T) {
	for _, url := range []string{"http://Tools.Example/", "HTTP://tools.example:80"} {
		req, err := http.NewRequest(http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := originOf(req.URL); got != "http://tools.example:80" {
			t.Errorf("%s: %s", url, got)
		}
	}
}

func TestConcurrentCallsReuseTheirConnections(t *testing.T) {
	const many = 50
	var dialed atomic.Int32
	var arrive sync.WaitGroup
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		arrive.Done()
		arrive.Wait() // so that each needs a connection of its own
	}))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			dialed.Add(1)
		}
	}
	server.Start()
	defer server.Close()
	client := testClient(t, Spec{ID: "s", URL: server.URL})
	for range 3 {
		arrive.Add(many)
		var calls sync.WaitGroup
		for range many {
			calls.Go(func() {
				if _, err := fetch(t, client, server.URL); err != nil {
					t.Error(err)
				}
			})
		}
		calls.Wait()
	}
	// The transport may dial one more than it needs while another becomes free.
	if n := dialed.Load(); n >= 2*many {
		t.Errorf("%d connections for %d calls at once", n, many)
	}
}

func TestWebSocketDialUsesHTTP1OverVerifiedTLS(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Proto+" "+r.Header.Get("X-Key"))
	}))
	server.EnableHTTP2 = true // a connection cannot be had in it
	server.StartTLS()
	defer server.Close()
	spec := Spec{ID: "s", Type: TypeWebSocket, URL: "wss" + strings.TrimPrefix(server.URL, "https") + "/mcp", Headers: map[string]string{"X-Key": "k"}}
	if _, err := fetch(t, testClient(t, spec), server.URL); err == nil {
		t.Error("a certificate that nobody vouches for was accepted")
	}
	client := testClient(t, spec)
	client.Transport.(*originTripper).base.TLSClientConfig = server.Client().Transport.(*http.Transport).TLSClientConfig
	if got, err := fetch(t, client, server.URL); err != nil || got != "HTTP/1.1 k" {
		t.Errorf("%s, %v", got, err)
	}
	var refused *schema.Error
	if _, err := fetch(t, client, "https://elsewhere.invalid"); !errors.As(err, &refused) {
		t.Errorf("%v", err)
	}
	spec.URL = server.URL
	if _, err := fetch(t, testClient(t, spec), server.URL); !errors.As(err, &refused) || !strings.Contains(refused.Detail, "a ws or wss URL") {
		t.Errorf("%v", err)
	}
}
