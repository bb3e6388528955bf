// Package origin decides which web pages may use a front door.
//
// A program sends no Origin header. A browser does, and runs code of whatever page
// is open, so requests from pages of other origins are refused unless the origin is
// on the allow-list. Origins on the list also get the CORS headers without which a
// browser keeps the answer from its page (Fetch standard, section 3.2).
//
// A front door without API keys lets in whoever reaches its port. It answers to host
// names of loopback only: a page can point a name of its own at 127.0.0.1 (DNS
// rebinding).
package origin

import (
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/rs/cors"

	"github.com/callyard/callyard/pkg/schema"
)

// preflightSeconds is how long a browser may keep the answer to a preflight request.
const preflightSeconds = 600

// hostCharacters are those of a host and port as browsers send them: other letters are
// in punycode.
const hostCharacters = "abcdefghijklmnopqrstuvwxyz0123456789-.:[]"

// exposed are the response headers that a page may read, in addition to those that
// every page may (Fetch standard, section 2.2.6).
var exposed = []string{
	"Age", "Callyard-Call-Id", "Callyard-Worker", "Idempotency-Replayed", "Link", "Location", "Mcp-Protocol-Version", "Mcp-Session-Id",
	"Preference-Applied", "Retry-After", "WWW-Authenticate", "X-Request-Id",
}

// Policy says which origins and host names are served. It is safe for concurrent use.
type Policy struct {
	protection *http.CrossOriginProtection
	allowed    map[string]bool
	cors       *cors.Cors // nil: no origin is allowed
	hasKeys    func() bool
}

// New returns the policy of a front door. origins are those whose pages may use it, in
// addition to its own, as "https://app.example.com" or "http://localhost:3000". hasKeys
// says whether callers must show an API key. It returns an error that names an origin
// which is none.
func New(origins []string, hasKeys func() bool) (*Policy, error) {
	p := &Policy{protection: http.NewCrossOriginProtection(), allowed: make(map[string]bool), hasKeys: hasKeys}
	var list []string
	for _, text := range origins {
		o, err := Parse(text)
		if err != nil {
			return nil, err
		}
		if err := p.protection.AddTrustedOrigin(o); err != nil {
			return nil, fmt.Errorf("the origin %q: %w", text, err)
		}
		p.allowed[o] = true
		list = append(list, o)
	}
	if len(list) > 0 {
		p.cors = cors.New(cors.Options{
			AllowedOrigins: list,
			AllowedMethods: []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete},
			// Keys travel in headers that the page sets, never in cookies: a page without
			// a key gets nothing, so any header may be sent and credentials stay off.
			AllowedHeaders:      []string{"*"},
			ExposedHeaders:      exposed,
			MaxAge:              preflightSeconds,
			AllowPrivateNetwork: true,
		})
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
		return "", fmt.Errorf(`the origin "*" would let every web page in; name each origin, as "https://app.example.com"`)
	case err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" || u.User != nil || u.Path != "" || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || strings.ContainsAny(text, "#") || strings.Trim(u.Host, hostCharacters) != "":
		return "", fmt.Errorf(`%q is not an origin; an origin is a scheme, a host and possibly a port, as "https://app.example.com" or "http://localhost:3000"`, text)
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
	if from := r.Header.Get("Origin"); from != "" && !p.allowed[from] && !sameHost(from, r.Host) || p.protection.Check(r) != nil {
		return schema.Errorf(schema.KindForbidden, "The request comes from a web page of another origin. Only pages whose origin is listed in front_door.origins may use this front door.")
	}
	if !p.hasKeys() && !loopback(r.Host) {
		return schema.Errorf(schema.KindForbidden, "A front door without API keys answers to the names of loopback only. Reach it as 127.0.0.1 or localhost, or configure keys.")
	}
	return nil
}

// CORS answers preflight requests of allowed origins and adds the CORS headers to the
// answers of next. Without an allowed origin it returns next.
func (p *Policy) CORS(next http.Handler) http.Handler {
	if p.cors == nil {
		return next
	}
	return p.cors.Handler(next)
}

// sameHost reports whether a page of the origin was served by the host, port included.
// The scheme is not compared: TLS may end at a proxy.
func sameHost(origin, host string) bool {
	_, from, ok := strings.Cut(origin, "://")
	return ok && strings.EqualFold(from, host)
}

func loopback(host string) bool {
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
