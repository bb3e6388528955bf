// Package urls keeps what is not part of a URL out of it, secrets of a URL out of errors, and secrets
// from being sent to a URL unencrypted.
package urls

import (
	"errors"
	"net/netip"
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

// Secure parses an address to which secrets may be sent: https, or http to this machine, without a
// user, a password and a fragment. The bool is false for any other text.
func Secure(text string) (*url.URL, bool) {
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || u.User != nil || u.Fragment != "" {
		return nil, false
	}
	return u, u.Scheme == "https" || u.Scheme == "http" && Loopback(u.Hostname())
}

// Loopback reports whether a host, without a port, is localhost or a loopback address.
func Loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback() || strings.EqualFold(host, "localhost")
}
