// Package urls keeps what is not part of a URL out of it, and secrets of a URL out of errors.
package urls

import (
	"errors"
	"net/url"
	"strings"
)

// Segment escapes a name as one path segment. It also escapes "." and "..", which routers and
// clients would resolve.
func Segment(name string) string {
	if name == "." || name == ".." {
		return strings.ReplaceAll(name, ".", "%2E")
	}
	return url.PathEscape(name)
}

// WithoutURL removes the URL from an error of net/http, because its query may hold a secret.
func WithoutURL(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}
