// Package httpguard decides which web pages, and under which host names, a request may
// come from.
//
// A program sends no Origin header. A browser does, and runs code of whatever page
// is open, so a [Policy] refuses requests from pages of other origins unless the origin is
// on its allow-list.
//
// A server without API keys lets in everybody who reaches its port. It answers to host
// names of loopback only, which [Loopback] knows: a page can point a name of its own at
// 127.0.0.1 (DNS rebinding).
//
// It refuses to authenticate, and to write CORS headers: that is for the servers that
// let pages of other origins in.
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

// hostCharacters are those of a host and port as browsers send them: other letters are
// in punycode.
const hostCharacters = "abcdefghijklmnopqrstuvwxyz0123456789-.:[]"

// Policy says which origins and host names are served. It is safe for concurrent use.
type Policy struct {
	protection *http.CrossOriginProtection
	allowed    []string
	hasKeys    func() bool
}

// New returns the policy of a front door. origins are those whose pages may use it, in
// addition to its own, as "https://app.example.com" or "http://localhost:3000". hasKeys
// says whether callers must show an API key. It returns an error that names an origin
// which is none.
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
// port of its scheme. It refuses what is not a scheme (http or https), a host and
// possibly a port.
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

// Check returns the reason to refuse a request because of the page that made it or the
// host name that it asks for, or nil. Requests without an Origin header that change
// nothing pass: no page can read the answer.
func (p *Policy) Check(r *http.Request) *schema.Error {
	if from := r.Header.Get("Origin"); from != "" && !slices.Contains(p.allowed, from) && !sameHost(from, r.Host) || p.protection.Check(r) != nil {
		return schema.Errorf(schema.KindForbidden, "The request comes from a web page of another origin. Only pages from origins in front_door.origins can use this front door.")
	}
	if !p.hasKeys() && !Loopback(r.Host) {
		return schema.Errorf(schema.KindForbidden, "A front door without API keys answers only on loopback names. Use 127.0.0.1 or localhost, or configure keys.")
	}
	return nil
}

// Origins returns the origins on the allow-list, as [Parse] writes them.
func (p *Policy) Origins() []string { return slices.Clone(p.allowed) }

// sameHost reports whether a page of the origin was served by the host, port included.
// The scheme is not compared: TLS may end at a proxy.
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
