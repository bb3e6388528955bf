// Package httpguard checks the Origin and Host headers of requests.
//
// Programs send no Origin header. Browsers do, and they run the code of any open page, so a
// [Policy] refuses requests from pages of other origins unless the origin is on its allow-list.
//
// A server without API keys accepts every client that can reach its port. It serves only loopback
// host names (see [Loopback]), because a page can point its own host name at 127.0.0.1 (DNS
// rebinding).
//
// It does not authenticate, and writes no CORS headers: servers that allow pages of other origins
// do that.
package httpguard

import (
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/callyard/callyard/pkg/schema"
)

// hostCharacters lists the characters of a host and port as sent by browsers. Other letters are
// in punycode.
const hostCharacters = "abcdefghijklmnopqrstuvwxyz0123456789-.:[]"

// Policy determines the allowed origins and host names. It is safe for concurrent use.
type Policy struct {
	protection *http.CrossOriginProtection
	allowed    []string
	hasKeys    func() bool
}

// New returns the policy of a front door. origins lists the origins whose pages may use it, in
// addition to its own, such as "https://app.example.com" or "http://localhost:3000". hasKeys
// reports whether callers must present an API key. The error names an invalid origin.
func New(origins []string, hasKeys func() bool) (*Policy, error) {
	p := &Policy{protection: http.NewCrossOriginProtection(), hasKeys: hasKeys}
	for _, text := range origins {
		o, err := Parse(text)
		if err != nil {
			return nil, err
		}
		if err := p.protection.AddTrustedOrigin(o); err != nil {
			return nil, fmt.Errorf("the origin %q: %w", text, err)
		}
		p.allowed = append(p.allowed, o)
	}
	return p, nil
}

// Parse returns an origin as browsers send it: in lower case and without the default
// port of its scheme. It accepts only a scheme (http or https), a host and an optional port.
func Parse(text string) (string, error) {
	u, err := url.Parse(strings.ToLower(text))
	switch {
	case text == "*":
		return "", fmt.Errorf(`the origin "*" would allow every web page; list each origin, such as "https://app.example.com"`)
	case err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" || u.User != nil || u.Path != "" || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || strings.ContainsAny(text, "#") || strings.Trim(u.Host, hostCharacters) != "":
		return "", fmt.Errorf(`%q is not an origin; an origin is a scheme, a host and optionally a port, such as "https://app.example.com" or "http://localhost:3000"`, text)
	}
	host := u.Host
	if u.Scheme == "http" {
		host = strings.TrimSuffix(host, ":80")
	} else {
		host = strings.TrimSuffix(host, ":443")
	}
	return u.Scheme + "://" + strings.TrimSuffix(host, ":"), nil
}

// Check returns the reason to refuse a request because of its Origin or Host header, or nil. Safe
// methods without an Origin header are allowed, because no page can read the response.
func (p *Policy) Check(r *http.Request) *schema.Error {
	if from := r.Header.Get("Origin"); from != "" && !slices.Contains(p.allowed, from) && !sameHost(from, r.Host) || p.protection.Check(r) != nil {
		return schema.Errorf(schema.KindForbidden, "The request comes from a web page of another origin. Only pages from origins in front_door.origins can use this front door.")
	}
	if !p.hasKeys() && !Loopback(r.Host) {
		return schema.Errorf(schema.KindForbidden, "A front door without API keys answers only on loopback names. Use 127.0.0.1 or localhost, or configure keys.")
	}
	return nil
}

// Origins returns the origins on the allow-list, in the format of [Parse].
func (p *Policy) Origins() []string { return slices.Clone(p.allowed) }

// sameHost reports whether a page of the origin was served by the host, including the port. It
// does not compare the scheme, because TLS may end at a proxy.
func sameHost(origin, host string) bool {
	_, from, ok := strings.Cut(origin, "://")
	return ok && strings.EqualFold(from, host)
}

// Loopback reports whether a Host header, with or without a port, is a name or address of
// loopback: localhost, a name below it, 127.0.0.0/8 or ::1.
func Loopback(host string) bool {
	if colon := strings.LastIndexByte(host, ':'); colon > strings.LastIndexByte(host, ']') {
		host = host[:colon]
	}
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	address, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil && address.IsLoopback()
}
