package callyard

import (
	"context"
	"net/http"
	"strings"
)

// New returns a client of the front door at the address url, such as
// "http://127.0.0.1:8080". key is an API key, empty where the front door asks for
// none. Options replace the HTTP client or change requests. What is refused for a
// moment is sent again where that is safe: see [WithRetries].
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

// WithIdempotencyKey makes a request one that may be sent again: the same key with the
// same request is the same call, for 24 h.
func WithIdempotencyKey(key string) RequestEditorFn {
	return func(_ context.Context, r *http.Request) error {
		r.Header.Set("Idempotency-Key", key)
		return nil
	}
}

// segment is an escaped name as one segment of a path: "." and "..", which nothing
// escapes, would be taken for directions.
func segment(escaped string) string {
	if escaped == "." || escaped == ".." {
		return strings.ReplaceAll(escaped, ".", "%2E")
	}
	return escaped
}
