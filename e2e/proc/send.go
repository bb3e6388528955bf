package proc

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// Client returns an HTTP client that uses no proxy, times out after within, and is closed with
// the test.
func Client(t testing.TB, within time.Duration) *http.Client {
	transport := &http.Transport{DialContext: (&net.Dialer{Timeout: 5 * time.Second}).DialContext, MaxIdleConnsPerHost: 64, DisableCompression: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: within}
}

// Send sends a request, with a JSON body unless it is "", and returns the whole response.
// Headers are "Name: value". If there is an error, the text may be truncated.
func Send(ctx context.Context, c *http.Client, method, url, body string, headers ...string) (status int, header http.Header, text []byte, err error) {
	var from io.Reader
	if body != "" {
		from = strings.NewReader(body)
	}
	r, err := http.NewRequestWithContext(ctx, method, url, from)
	if err != nil {
		return 0, nil, nil, err
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	resp, err := c.Do(r)
	if err != nil {
		return 0, nil, nil, err
	}
	defer resp.Body.Close()
	if text, err = io.ReadAll(resp.Body); err != nil {
		err = fmt.Errorf("reading the answer of %s %s: %w", method, r.URL.Path, err)
	}
	return resp.StatusCode, resp.Header, text, err
}
