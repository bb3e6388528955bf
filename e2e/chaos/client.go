package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// client sends requests like an honest client: it uses the next front door if one
// does not answer, and waits as long as it is asked to.
type client struct {
	urls []string
	http *http.Client
	next atomic.Int64
}

const (
	// requestTimeout is less than the longest stop, so that clients give up on a
	// frozen front door.
	requestTimeout = 10 * time.Second
	// maxRetryAfter limits the Retry-After that a client honors.
	maxRetryAfter = 2 * time.Second
	errorPause    = 50 * time.Millisecond
)

func newClient(f *fleet, first int) *client {
	c := &client{urls: f.urls, http: &http.Client{Transport: &http.Transport{
		DialContext: f.dial, MaxIdleConnsPerHost: 4, DisableCompression: true, IdleConnTimeout: 30 * time.Second,
	}}}
	c.next.Store(int64(first))
	return c
}

func (c *client) close() { c.http.CloseIdleConnections() }

// answer is an HTTP response.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// request sends a request to the current front door.
func (c *client) request(ctx context.Context, method, path, body string, headers ...string) (*http.Response, error) {
	base := c.urls[int(c.next.Load())%len(c.urls)]
	var from io.Reader
	if body != "" {
		from = strings.NewReader(body)
	}
	r, err := http.NewRequestWithContext(ctx, method, base+path, from)
	if err != nil {
		return nil, err
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	return c.http.Do(r)
}

// send sends a request and reads its response. After an error the next request goes to
// another front door.
func (c *client) send(ctx context.Context, method, path, body string, headers ...string) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	resp, err := c.request(ctx, method, path, body, headers...)
	if err != nil {
		c.next.Add(1)
		return answer{}, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		c.next.Add(1)
		return answer{}, err
	}
	if resp.StatusCode == http.StatusServiceUnavailable {
		c.next.Add(1)
	}
	return answer{resp.StatusCode, resp.Header, text}, nil
}

// retryAfter returns the time that the response asks to wait.
func (a answer) retryAfter() time.Duration {
	if a.header != nil {
		if seconds, err := strconv.Atoi(a.header.Get("Retry-After")); err == nil {
			return min(time.Duration(seconds)*time.Second, maxRetryAfter)
		}
	}
	return errorPause
}

// rest waits. It returns false if the load ends.
func rest(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// problem holds the fields of a problem document that clients use.
type problem struct {
	Type   string `json:"type"`
	CallID string `json:"call_id"`
	Detail string `json:"detail"`
}

func (a answer) problem() (p problem) {
	_ = json.Unmarshal(a.body, &p) // anything else has no type
	return p
}

// String returns the text under which an unexpected answer is counted.
func (a answer) String() string {
	return fmt.Sprintf("%d %s", a.status, strings.TrimPrefix(a.problem().Type, "/problems/"))
}

// ended reports whether the state is final unless a person acts.
func ended(state string) bool {
	switch state {
	case "succeeded", "failed", "denied", "expired", "canceled", "unknown":
		return true
	}
	return false
}
