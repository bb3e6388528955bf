package model

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/callyard/callyard/internal/kit/backoff"
	"github.com/callyard/callyard/internal/kit/sleep"
	"github.com/callyard/callyard/internal/kit/sse"
	"github.com/callyard/callyard/internal/kit/truncate"
)

const (
	maxAnswer   = 64 << 20 // bytes of a complete answer, or of one event
	maxFault    = 64 << 10 // bytes of an error response
	attempts    = 4
	longestWait = time.Minute // the longest Retry-After that is honored
)

var pauses = backoff.Policy{First: 500 * time.Millisecond, Max: 8 * time.Second, Jitter: 0.3}

// Options configures the connection to a model.
type Options struct {
	BaseURL string              // replaces the provider's URL
	Getenv  func(string) string // source of the API key, usually os.Getenv
	Headers map[string]string   // additional headers
	HTTP    *http.Client        // its redirects are not followed
}

// Client sends requests to one model. It is safe for concurrent use.
type Client struct {
	Spec Spec
	Wire Wire
	// Loose means that the model may write calls as text.
	Loose bool

	base    string
	key     string
	header  string
	version string
	headers map[string]string
	http    *http.Client
}

// Open returns a client. It sends no request.
func Open(spec Spec, o Options) (*Client, error) {
	p := spec.provider()
	base := cmp.Or(o.BaseURL, p.base)
	if base == "" {
		return nil, fmt.Errorf("the provider %s has no default address; pass --base-url", spec.Provider)
	}
	base, err := baseURL(base)
	if err != nil {
		return nil, err
	}
	direct := http.Client{}
	if o.HTTP != nil {
		direct = *o.HTTP
	}
	// A redirect would turn the request into a GET, or take the key to another host.
	direct.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	c := &Client{Spec: spec, Wire: p.wire, Loose: p.loose, base: base, header: p.header, version: p.version, headers: o.Headers, http: &direct}
	for _, name := range p.keys {
		if c.key = o.Getenv(name); c.key != "" {
			break
		}
	}
	if c.key == "" && p.base == base && !p.loose {
		return nil, fmt.Errorf("there is no key for %s: set %s", spec.Provider, strings.Join(p.keys, " or "))
	}
	return c, nil
}

// Error is an error response of the API.
type Error struct {
	Status     int // HTTP status; 0 if the error arrived in a stream
	Type       string
	Message    string
	RetryAfter time.Duration
}

func (e *Error) Error() string {
	text := cmp.Or(e.Message, http.StatusText(e.Status))
	if e.Type != "" {
		text = e.Type + ": " + text
	}
	if e.Status != 0 {
		text = fmt.Sprintf("HTTP %d: %s", e.Status, text)
	}
	return "the model's API answered " + text
}

// retryable reports whether the same request may succeed later. 529 is Anthropic's
// overloaded_error.
func (e *Error) retryable() bool {
	return e.Status == http.StatusTooManyRequests || e.Status == http.StatusRequestTimeout || e.Status >= 500 ||
		e.Type == "overloaded_error" || e.Type == "rate_limit_error" || e.Type == "api_error" || e.Type == "server_error"
}

// ErrTruncated means that a stream ended before the answer was complete.
var ErrTruncated = errors.New("the stream of the model's answer ended early")

// Ask sends the request and returns the answer. If text is not nil, the answer is streamed and
// text is called with each piece. Ask retries a transient failure up to three times. It calls
// restart before a retry if text was already called. If a model server may lose calls while it
// streams and the streamed answer is empty, Ask repeats the request without streaming. An error of
// the API is an [*Error].
func (c *Client) Ask(ctx context.Context, r *Request, text func(string), restart func()) (*Answer, error) {
	stream := text != nil
	var spent Usage // on an answer without content
	for n := 1; ; n++ {
		said := false
		say := func(s string) {
			said = said || s != ""
			text(s)
		}
		a, err := c.once(ctx, r, stream, say)
		if err == nil && stream && c.Loose && a.Text == "" && len(a.Calls) == 0 {
			stream, spent = false, a.Usage // some versions of Ollama lose calls in streams
			continue
		}
		if err == nil && spent.Reported && a.Usage.Reported {
			a.Usage = a.Usage.Add(spent)
		}
		if err == nil || ctx.Err() != nil || n >= attempts || !isRetryable(err) {
			return a, err
		}
		if said && restart != nil {
			restart()
		}
		wait := pauses.Delay(n - 1)
		if fault, ok := errors.AsType[*Error](err); ok && fault.RetryAfter > 0 {
			if fault.RetryAfter > longestWait {
				return nil, err
			}
			wait = fault.RetryAfter
		}
		if !sleep.For(wait, ctx.Done()) {
			return nil, ctx.Err()
		}
	}
}

// isRetryable reports whether a retry may help. A retry is safe because requests have no side effects.
func isRetryable(err error) bool {
	if fault, ok := errors.AsType[*Error](err); ok {
		return fault.retryable()
	}
	_, invalid := errors.AsType[*shapeError](err)
	return !invalid
}

// shapeError means that a response does not match the documented format.
type shapeError struct{ what string }

func (e *shapeError) Error() string { return "the model's API answered in an unknown shape: " + e.what }

func (c *Client) once(ctx context.Context, r *Request, stream bool, text func(string)) (*Answer, error) {
	path, body, err := c.Wire.Request(c.Spec.Name, r, stream)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("creating the request to the model: %w", err)
	}
	request.Header.Set("Content-Type", "application/json")
	if name, value, ok := strings.Cut(c.version, ": "); ok {
		request.Header.Set(name, value)
	}
	switch {
	case c.key == "":
	case c.header == "":
		request.Header.Set("Authorization", "Bearer "+c.key)
	default:
		request.Header.Set(c.header, c.key)
	}
	for name, value := range c.headers {
		request.Header.Set(name, value)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, fmt.Errorf("reaching the model: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return nil, readFault(response)
	}
	answer := bufio.NewReader(response.Body)
	if stream && isEventStream(response.Header.Get("Content-Type"), answer) {
		return Assemble(answer, c.Wire.Stream(text))
	}
	whole, err := io.ReadAll(io.LimitReader(answer, maxAnswer+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading the model's answer: %w", err)
	case len(whole) > maxAnswer:
		return nil, &shapeError{fmt.Sprintf("it has more than %d MiB", maxAnswer>>20)}
	}
	a, err := c.Wire.Read(whole)
	if err == nil && stream {
		text(a.Text)
	}
	return a, err
}

// isEventStream reports whether an answer is an event stream: by its content type, or else by its
// first bytes, because some servers and proxies give a stream another content type.
func isEventStream(contentType string, answer *bufio.Reader) bool {
	if kind, _, err := mime.ParseMediaType(contentType); err == nil && kind == "text/event-stream" {
		return true
	}
	first, _ := answer.Peek(len("event:")) // an answer that ends earlier has no event
	return bytes.HasPrefix(first, []byte("data:")) || bytes.HasPrefix(first, []byte("event:")) || bytes.HasPrefix(first, []byte(":"))
}

// Assemble reads an event stream to its end and returns the answer.
func Assemble(body io.Reader, into Assembler) (*Answer, error) {
	events := sse.NewReader(body, 16<<10, maxAnswer)
	for {
		ev, err := events.Next()
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return into.Answer()
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrTruncated, err)
		}
		if string(ev.Data) == "[DONE]" {
			return into.Answer()
		}
		done, err := into.Add(ev.Name, ev.Data)
		if err != nil {
			return nil, err
		}
		if done {
			return into.Answer()
		}
	}
}

// readFault reads an error response: {"error":{…}} in all four APIs, and plain text or a list with
// one such object in some.
func readFault(response *http.Response) error {
	body, _ := io.ReadAll(io.LimitReader(response.Body, maxFault)) // use the part that could be read
	e := faultOf(body)
	if e == nil {
		e = &Error{Message: truncate.Text(strings.TrimSpace(string(body)), 500)}
	}
	e.Status = response.StatusCode
	if to := response.Header.Get("Location"); to != "" && e.Status < http.StatusBadRequest {
		e.Message = "it redirects to " + truncate.Text(to, 500) + "; set the address with --base-url"
	}
	e.RetryAfter = backoff.RetryAfter(response.Header.Get("Retry-After"), time.Now(), math.MaxInt64)
	return e
}

// faultOf returns the error in a JSON object, or nil if it has none.
func faultOf(body []byte) *Error {
	var whole struct {
		Error json.RawMessage `json:"error"`
	}
	body = bytes.TrimSpace(body)
	if len(body) > 0 && body[0] == '[' {
		var list []json.RawMessage
		if json.Unmarshal(body, &list) == nil && len(list) > 0 {
			body = list[0]
		}
	}
	if json.Unmarshal(body, &whole) != nil || len(whole.Error) == 0 || string(whole.Error) == "null" {
		return nil
	}
	var e struct {
		Type    string `json:"type"`
		Status  string `json:"status"`
		Message string `json:"message"`
	}
	if json.Unmarshal(whole.Error, &e) != nil {
		var text string
		if json.Unmarshal(whole.Error, &text) != nil {
			text = string(whole.Error)
		}
		return &Error{Message: text}
	}
	return &Error{Type: cmp.Or(e.Type, e.Status), Message: e.Message}
}
