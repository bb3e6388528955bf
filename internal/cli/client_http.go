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

	callyard "github.com/callyard/callyard/clients/go"
	"github.com/callyard/callyard/internal/kit/urls"
)

const (
	// problemMost limits the size of a problem document, in bytes.
	problemMost = 1 << 20
	mediaJSON   = "application/json"
	mediaEvents = "text/event-stream"
)

// request is one request to the front door, with the signature of a method of the Go client.
type request func(ctx context.Context, edit ...callyard.RequestEditorFn) (*http.Response, error)

// with returns the request of an operation that takes an id or parameters.
func with[P any](ask func(context.Context, P, ...callyard.RequestEditorFn) (*http.Response, error), p P) request {
	return func(ctx context.Context, edit ...callyard.RequestEditorFn) (*http.Response, error) {
		return ask(ctx, p, edit...)
	}
}

// with2 is [with] for an operation that takes two arguments, such as an id and a body.
func with2[P, Q any](ask func(context.Context, P, Q, ...callyard.RequestEditorFn) (*http.Response, error), p P, q Q) request {
	return func(ctx context.Context, edit ...callyard.RequestEditorFn) (*http.Response, error) {
		return ask(ctx, p, q, edit...)
	}
}

// with3 is [with] for an operation that takes three arguments.
func with3[P, Q, R any](ask func(context.Context, P, Q, R, ...callyard.RequestEditorFn) (*http.Response, error), p P, q Q, r R) request {
	return func(ctx context.Context, edit ...callyard.RequestEditorFn) (*http.Response, error) {
		return ask(ctx, p, q, r, edit...)
	}
}

// content returns a body for [with2] and [with3].
func content(body []byte) io.Reader { return bytes.NewReader(body) }

// callRequest returns the request of a call, whose arguments keep their bytes.
func (c *client) callRequest(server, tool string, params *callyard.CallToolParams, arguments []byte) request {
	return func(ctx context.Context, edit ...callyard.RequestEditorFn) (*http.Response, error) {
		return c.api.CallToolWithBody(ctx, server, tool, params, mediaJSON, bytes.NewReader(arguments), edit...)
	}
}

// edit sets the headers that all requests have.
func edit(_ context.Context, r *http.Request) error {
	r.Header.Set("Accept", mediaJSON)
	r.Header.Set("User-Agent", "callyard")
	return nil
}

// other returns a request to an operation that the Go client does not have, namely those of the
// approver. path is escaped and includes the query.
func (c *client) other(method, path string, body []byte) request {
	return func(ctx context.Context, more ...callyard.RequestEditorFn) (*http.Response, error) {
		var content io.Reader
		if body != nil {
			content = bytes.NewReader(body)
		}
		r, err := http.NewRequestWithContext(ctx, method, c.base+path, content)
		if err != nil {
			return nil, err
		}
		if body != nil {
			r.Header.Set("Content-Type", mediaJSON)
		}
		if c.key != "" {
			r.Header.Set("Authorization", "Bearer "+c.key)
		}
		for _, e := range append([]callyard.RequestEditorFn{edit}, more...) {
			if err := e(ctx, r); err != nil {
				return nil, err
			}
		}
		return c.http.Do(r)
	}
}

// do sends the request and returns a successful response, whose body the caller must close. An
// unsuccessful or missing response is an *exitError.
func (c *client) do(ctx context.Context, q request, edit ...callyard.RequestEditorFn) (*http.Response, error) {
	resp, err := q(ctx, edit...)
	if err != nil {
		return nil, c.unreachable(ctx, err)
	}
	if resp.StatusCode >= 200 && resp.StatusCode < 300 {
		return resp, nil
	}
	defer resp.Body.Close()
	if to := resp.Header.Get("Location"); resp.StatusCode < http.StatusBadRequest && to != "" {
		return nil, fail(exitUnreachable, "%s redirects to %s: set the correct address with --url.", c.base, oneLine(to))
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, problemMost))
	if err != nil {
		return nil, c.unreachable(ctx, err)
	}
	return nil, c.refused(resp.StatusCode, resp.Header, text)
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

// report sends the request, decodes the JSON response into v and returns its bytes.
func (c *client) report(ctx context.Context, q request, v any) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, answerWait)
	defer cancel()
	resp, err := c.do(ctx, q)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	return c.decode(ctx, resp, v)
}

// decode decodes the JSON of a response into v and returns its bytes.
func (c *client) decode(ctx context.Context, resp *http.Response, v any) ([]byte, error) {
	body, err := c.readJSON(ctx, resp)
	if err == nil && json.Unmarshal(body, v) != nil {
		err = c.foreign()
	}
	return body, err
}

// foreign returns the error for a response that does not come from Callyard.
func (c *client) foreign() error {
	return fail(exitUnreachable, "%s answers, but it is not Callyard: check %s.", c.base, c.flag)
}

// unreachable returns the error for a request with a missing or incomplete response.
func (c *client) unreachable(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); errors.Is(cause, errQuiet) {
		return fail(exitUnreachable, "%s stopped responding: %w", c.base, cause)
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return fail(exitInterrupted, "Interrupted.")
	}
	if dial, ok := errors.AsType[*net.OpError](err); ok && dial.Op == "dial" {
		return fail(exitUnreachable, "Callyard is not reachable at %s: start it with `callyard up`, or set another address with %s.", c.base, c.flag)
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fail(exitUnreachable, "%s did not answer in time.", c.base)
	}
	return fail(exitUnreachable, "The connection to %s failed: %w", c.base, urls.WithoutURL(err)) // the message already has the URL
}

func mediaType(h http.Header) string {
	media, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	if err != nil {
		return ""
	}
	return media
}
