package fetch

import (
	"compress/gzip"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// web serves on loopback, and returns a server that may fetch from it.
func web(t *testing.T, h http.HandlerFunc) (*server, string) {
	t.Helper()
	w := httptest.NewServer(h)
	t.Cleanup(w.Close)
	g, err := newGuard([]string{w.Listener.Addr().String()})
	if err != nil {
		t.Fatal(err)
	}
	return newServer(g, "Callyard/test"), w.URL
}

func TestFetchReturnsTheTextOfAPage(t *testing.T) {
	s, url := web(t, func(w http.ResponseWriter, r *http.Request) {
		kind, body := "text/plain; charset=utf-8", ""
		switch r.URL.Path {
		case "/html":
			kind, body = "text/html", "<title>A title</title><script>x()</script><p>One <a href='/two'>two</a>"
		case "/latin1":
			kind, body = "text/html; charset=iso-8859-1", "<p>caf\xe9"
		case "/meta":
			kind, body = "text/html", "<meta charset=shift_jis><p>\x93\xfa\x96\x7b"
		case "/unknown":
			kind, body = "text/html", "<p>caf\xe9"
		case "/utf8":
			kind, body = "text/html", "<p>café"
		case "/json":
			kind, body = "application/json", `{"a": "<b>"}`
		case "/feed":
			kind, body = "application/atom+xml", "<feed/>"
		case "/none":
			kind, body = "", "plain"
		case "/headers":
			body = r.Header.Get("User-Agent") + "|" + r.Header.Get("Referer") + "|" + r.Header.Get("Cookie") + "|" + r.Header.Get("Authorization")
		case "/redirect":
			w.Header().Set("Set-Cookie", "a=b")
			http.Redirect(w, r, "/headers", http.StatusFound)
			return
		}
		w.Header()["Content-Type"] = []string{kind}
		if kind == "" {
			w.Header()["Content-Type"] = nil
		}
		_, _ = w.Write([]byte(body))
	})
	for path, want := range map[string]string{
		"/html": "One two", "/latin1": "café", "/meta": "日本", "/unknown": "café", "/utf8": "café", "/json": `{"a": "<b>"}`, "/feed": "<feed/>", "/none": "plain",
		"/headers": "Callyard/test|||", "/redirect": "Callyard/test|||",
	} {
		p, err := s.fetch(t.Context(), nil, arguments{URL: url + path})
		if err != nil || p.Content != want || p.Truncated {
			t.Errorf("%s: %+v, %v", path, p, err)
		}
		if path == "/redirect" && p.URL != url+"/headers" || path == "/html" && p.Title != "A title" {
			t.Errorf("%s: %+v", path, p)
		}
	}
	if p, err := s.fetch(t.Context(), nil, arguments{URL: " " + url + "/html ", Links: true}); err != nil || p.Content != "One two <"+url+"/two>" {
		t.Errorf("%+v, %v", p, err)
	}
}

func TestFetchIsBounded(t *testing.T) {
	release := make(chan struct{})
	s, url := web(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		switch r.URL.Path {
		case "/bomb": // 200 MiB in 200 KiB
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			for range 200 {
				if _, err := z.Write(make([]byte, 1<<20)); err != nil {
					return
				}
			}
			z.Close()
		case "/endless":
			for {
				if _, err := w.Write([]byte(strings.Repeat("é", 1<<15))); err != nil {
					return
				}
			}
		case "/slow":
			<-release
		case "/drip":
			for {
				if _, err := w.Write([]byte("x")); err != nil || r.Context().Err() != nil {
					return
				}
				w.(http.Flusher).Flush()
				select {
				case <-r.Context().Done():
				case <-time.After(10 * time.Millisecond): // a slow server
				}
			}
		case "/headers":
			for range 1000 {
				w.Header().Add("X", strings.Repeat("x", 1000))
			}
		case "/image":
			w.Header().Set("Content-Type", "image/png")
		case "/missing":
			http.NotFound(w, r)
		}
	})
	defer close(release)
	for _, path := range []string{"/bomb", "/endless"} {
		p, err := s.fetch(t.Context(), nil, arguments{URL: url + path})
		if err != nil || !p.Truncated || len(p.Content) > maxText {
			t.Errorf("%s: %d bytes, %v, %v", path, len(p.Content), p.Truncated, err)
		}
	}
	if p, err := s.fetch(t.Context(), nil, arguments{URL: url + "/endless", Max: 101}); err != nil || p.Content != strings.Repeat("é", 50) || !p.Truncated {
		t.Errorf("%+v, %v", p, err)
	}
	for path, want := range map[string]string{
		"/slow": "did not answer within 300ms", "/drip": "did not answer within 300ms", "/headers": "cannot be fetched", "/image": "the content is image/png and not text", "/missing": "answers with the status 404 Not Found",
	} {
		start := time.Now()
		timeout := 0.0
		if path == "/slow" || path == "/drip" {
			timeout = 0.3
		}
		if _, err := s.fetch(t.Context(), nil, arguments{URL: url + path, Timeout: timeout}); err == nil || !strings.Contains(err.Error(), want) || time.Since(start) > 20*time.Second {
			t.Errorf("%s: %v after %v", path, err, time.Since(start))
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.fetch(ctx, nil, arguments{URL: url + "/slow"}); err == nil {
		t.Error("a call that was cancelled succeeds")
	}
}

func TestNoProxyOfTheEnvironmentIsUsed(t *testing.T) {
	proxied := false
	proxy := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { proxied = true }))
	defer proxy.Close()
	t.Setenv("HTTP_PROXY", proxy.URL)
	t.Setenv("http_proxy", proxy.URL)
	s, r := testServer(t, nil)
	if _, err := s.fetch(t.Context(), nil, arguments{URL: "http://93.184.216.34/"}); err == nil || proxied || len(r.dials) != 1 {
		t.Errorf("%v, proxied %v, %v", r.dials, proxied, err)
	}
	if s.client.Transport.(*http.Transport).Proxy != nil {
		t.Error("there is a proxy") // the environment is read only once, so the test above may not notice a proxy
	}
}

func TestErrorsNameTheFault(t *testing.T) {
	s, _ := testServer(t, insideDNS())
	for url, want := range map[string]string{
		"":                            "the scheme of the URL is \"\"; only http and https",
		"ftp://x/":                    "only http and https",
		"http://":                     "the URL has no host",
		"http://a:b@example.com/":     "has a user name or password; remove them",
		"http://example.com:22/":      "the port 22 is not fetched",
		"http://%zz/":                 "the URL is not valid",
		"http://10.0.0.1/":            "an operator can open it with the setting allow",
		"http://169.254.169.254/":     "never fetched",
		strings.Repeat("x", maxURL+1): "at most 8192",
	} {
		if _, err := s.fetch(t.Context(), nil, arguments{URL: url}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %q", url, err, want)
		}
	}
}
