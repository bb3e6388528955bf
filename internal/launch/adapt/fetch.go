package adapt

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/callyard/callyard/pkg/schema"
)

// Fetched is a document as it was read last, with what asks whether there is a
// newer one.
type Fetched struct {
	Body         []byte
	etag, edited string
}

// Fetch reads a document of at most limit bytes. Where it is the one that last
// holds, the same pointer comes back. The error is a *schema.Error; what names the
// document in it.
func Fetch(ctx context.Context, client *http.Client, id, what, address string, last *Fetched, limit int) (*Fetched, error) {
	failed := func(format string, args ...any) error {
		return schema.Errorf(schema.KindServerFailed, "%s of the server %q "+format, append([]any{what, id}, args...)...)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, failed("has no usable address; correct it.")
	}
	if last != nil && last.etag != "" {
		req.Header.Set("If-None-Match", last.etag)
	}
	if last != nil && last.edited != "" {
		req.Header.Set("If-Modified-Since", last.edited)
	}
	resp, body, err := Do(client, req, limit) //nolint:bodyclose // Do has closed it
	var large *TooLarge
	var ours *schema.Error
	switch {
	case errors.As(err, &ours):
		return nil, ours
	case errors.As(err, &large):
		return nil, failed("is larger than %d bytes; name a smaller one.", limit)
	case err != nil:
		return nil, failed("could not be fetched: %w; see that its address is right and can be reached.", err)
	case resp.StatusCode == http.StatusNotModified && last != nil:
		return last, nil
	case resp.StatusCode != http.StatusOK:
		return nil, failed("could not be fetched: it was answered with HTTP %d %s; see that its address is right.", resp.StatusCode, http.StatusText(resp.StatusCode))
	}
	return &Fetched{Body: body, etag: resp.Header.Get("Etag"), edited: resp.Header.Get("Last-Modified")}, nil
}

// Plain drops the address from an error of an HTTP client: a query in it may hold
// a secret.
func Plain(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return fmt.Errorf("sending the request: %w", err)
}
