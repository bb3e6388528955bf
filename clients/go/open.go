package callyard

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// New returns a client of the front door at the base URL url, such as
// "http://127.0.0.1:8080". key is an API key; it is "" if the front door requires none.
// Options replace the HTTP client or edit requests. The client retries temporary refusals
// when that is safe: see [WithRetries]. It sets no time limit: use a context with a deadline, or
// the Timeout of an HTTP client, which limits each attempt.
func New(url, key string, options ...ClientOption) (*ClientWithResponses, error) {
	if key != "" {
		bearer := WithRequestEditorFn(func(_ context.Context, r *http.Request) error {
			r.Header.Set("Authorization", "Bearer "+key)
			return nil
		})
		options = append([]ClientOption{bearer}, options...)
	}
	return NewClientWithResponses(url, withRetrier(options))
}

// WithIdempotencyKey makes a request safe to repeat: for 24 h, the same request with the same
// key is the same call.
func WithIdempotencyKey(key string) RequestEditorFn {
	return func(_ context.Context, r *http.Request) error {
		r.Header.Set("Idempotency-Key", key)
		return nil
	}
}

// WithCallTimeout sets the timeout of a call, in milliseconds rounded up. Without it, the timeout of the
// server applies. When it has passed, the error reports the outcome of the call, which the error of a
// context cannot.
func WithCallTimeout(timeout time.Duration) RequestEditorFn {
	ms := int64((timeout + time.Millisecond - 1) / time.Millisecond)
	return func(_ context.Context, r *http.Request) error {
		r.Header.Set("Callyard-Timeout-Ms", strconv.FormatInt(ms, 10))
		return nil
	}
}

// segment makes an escaped name safe as one segment of a path. Escaping leaves "." and ".."
// unchanged, and they would be resolved as relative paths.
func segment(escaped string) string {
	if escaped == "." || escaped == ".." {
		return strings.ReplaceAll(escaped, ".", "%2E")
	}
	return escaped
}
