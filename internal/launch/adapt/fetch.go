package adapt

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/callyard/callyard/pkg/schema"
)

// Document is a text that a source fetches repeatedly. It is not safe for concurrent use.
type Document struct {
	// Client sends the requests to Address. Server and Name identify the text in errors. Max limits
	// its size, in bytes.
	Client                *http.Client
	Server, Name, Address string
	Max                   int

	body         []byte
	etag, edited string
}

// Fetch fetches the text. The error is a *schema.Error.
func (d *Document) Fetch(ctx context.Context) ([]byte, error) {
	failed := func(format string, args ...any) error {
		return schema.Errorf(schema.KindServerFailed, "%s of the server %q "+format, append([]any{d.Name, d.Server}, args...)...)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, d.Address, nil)
	if err != nil {
		return nil, failed("has an invalid address; correct it.")
	}
	if d.etag != "" {
		req.Header.Set("If-None-Match", d.etag)
	}
	if d.edited != "" {
		req.Header.Set("If-Modified-Since", d.edited)
	}
	resp, body, err := Do(d.Client, req, d.Max) //nolint:bodyclose // Do has closed it
	var large *TooLarge
	var ours *schema.Error
	switch {
	case errors.As(err, &ours):
		return nil, ours
	case errors.As(err, &large):
		return nil, failed("is larger than %d bytes; use a smaller one.", d.Max)
	case err != nil:
		return nil, failed("could not be fetched: %w; check that its address is correct and reachable.", err)
	case resp.StatusCode == http.StatusNotModified && d.body != nil:
		return d.body, nil
	case resp.StatusCode != http.StatusOK:
		return nil, failed("could not be fetched: the response was HTTP %d %s; check that its address is correct.", resp.StatusCode, http.StatusText(resp.StatusCode))
	}
	d.body, d.etag, d.edited = body, resp.Header.Get("Etag"), resp.Header.Get("Last-Modified")
	return body, nil
}

// SameOrigin reports whether two addresses share the scheme, host and port, so that the credentials
// of one may be sent to the other.
func SameOrigin(a, b string) bool {
	u, errU := url.Parse(a)
	v, errV := url.Parse(b)
	return errU == nil && errV == nil && OriginOf(u) == OriginOf(v)
}

// OriginOf returns the scheme, host and port of an address.
func OriginOf(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[strings.ToLower(u.Scheme)]
	}
	return strings.ToLower(u.Scheme) + "://" + net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}
