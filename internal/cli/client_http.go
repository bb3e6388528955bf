package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const (
	// problemMost is more than a problem document takes.
	problemMost = 1 << 20
	mediaJSON   = "application/json"
	mediaEvents = "text/event-stream"
)

// request is one question to the front door.
type request struct {
	method  string
	path    string // escaped, with the query
	accept  string // empty means JSON
	body    []byte
	timeout time.Duration // for the call; 0 leaves it to the server
}

// do sends the request and returns the answer if it is a success; its body is to
// be closed. What is not a success, and no answer at all, is an *exitError.
func (c *client) do(ctx context.Context, q request) (*http.Response, error) {
	var body io.Reader
	if q.body != nil {
		body = bytes.NewReader(q.body)
	}
	r, err := http.NewRequestWithContext(ctx, q.method, c.base+q.path, body)
	if err != nil {
		return nil, fail(exitUsage, "The address %s%s cannot be asked: %w", c.base, q.path, err)
	}
	r.Header.Set("Accept", firstOf(q.accept, mediaJSON))
	r.Header.Set("User-Agent", "callyard")
	if q.body != nil {
		r.Header.Set("Content-Type", mediaJSON)
	}
	if c.key != "" {
		r.Header.Set("Authorization", "Bearer "+c.key)
	}
	if q.timeout > 0 {
		ms := (q.timeout + time.Millisecond - 1).Milliseconds() // at least one
		r.Header.Set("Callyard-Timeout-Ms", strconv.FormatInt(ms, 10))
	}
	resp, err := c.http.Do(r)
	if err != nil {
		return nil, c.unreachable(ctx, err)
	}
	if resp.StatusCode >= 200 && resp.StatusCode < 300 {
		return resp, nil
	}
	defer resp.Body.Close()
	if to := resp.Header.Get("Location"); resp.StatusCode < http.StatusBadRequest && to != "" {
		return nil, fail(exitUnreachable, "%s points to %s instead of answering: name the right address with --url.", c.base, oneLine(to))
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, problemMost))
	if err != nil {
		return nil, c.unreachable(ctx, err)
	}
	return nil, c.refused(resp.StatusCode, resp.Header, text)
}

// ask sends the request and returns the JSON that answers it.
func (c *client) ask(ctx context.Context, q request) (status int, body []byte, err error) {
	resp, err := c.do(ctx, q)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	body, err = c.readJSON(ctx, resp)
	return resp.StatusCode, body, err
}

func (c *client) readJSON(ctx context.Context, resp *http.Response) ([]byte, error) {
	if mediaType(resp.Header) != mediaJSON {
		return nil, c.foreign()
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, c.unreachable(ctx, err)
	}
	return body, nil
}

// get asks for a report and decodes it into v. It returns the bytes as well.
func (c *client) get(ctx context.Context, path string, v any) ([]byte, error) {
	return c.report(ctx, request{method: http.MethodGet, path: path}, v)
}

func (c *client) report(ctx context.Context, q request, v any) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, answerWait)
	defer cancel()
	_, body, err := c.ask(ctx, q)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(body, v); err != nil {
		return nil, c.foreign()
	}
	return body, nil
}

// foreign is the error for an answer that Callyard does not give.
func (c *client) foreign() error {
	return fail(exitUnreachable, "%s answers, but not as Callyard does: check --url.", c.base)
}

// unreachable is the error for a request without an answer, or with half of one.
func (c *client) unreachable(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); errors.Is(cause, errQuiet) {
		return fail(exitUnreachable, "%s went silent: %w", c.base, cause)
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return fail(exitInterrupted, "Interrupted.")
	}
	var dial *net.OpError
	if errors.As(err, &dial) && dial.Op == "dial" {
		return fail(exitUnreachable, "Callyard is not reachable at %s: start it with `callyard up`, or name another with --url.", c.base)
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fail(exitUnreachable, "No answer came from %s in time.", c.base)
	}
	var outer *url.Error
	if errors.As(err, &outer) {
		err = outer.Err // without the address, which is said already
	}
	return fail(exitUnreachable, "The connection to %s failed: %w", c.base, err)
}

func mediaType(h http.Header) string {
	media, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	if err != nil {
		return ""
	}
	return media
}

// segment escapes a name as one segment of a path. "." and ".." are escaped as
// well, which a router would take for directions.
func segment(name string) string {
	if name == "." || name == ".." {
		return strings.ReplaceAll(name, ".", "%2E")
	}
	return url.PathEscape(name)
}
