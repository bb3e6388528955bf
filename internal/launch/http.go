package launch

import (
	"cmp"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

const (
	dialTimeout  = 5 * time.Second
	tlsTimeout   = 5 * time.Second
	pingAfter    = 15 * time.Second // without traffic, on HTTP/2
	pingTimeout  = 15 * time.Second
	idleTimeout  = 90 * time.Second
	idlePerHost  = 256 // connections kept for this number of concurrent calls
	maxRedirects = 5
	maxHeader    = 256 << 10
)

// HTTPClient returns the client for the remote server of the spec. It has connections of its own; end
// them with CloseIdleConnections. It is safe for concurrent use.
//
// It connects to one origin only: the scheme, host and port of spec.URL. A request or redirect to
// another origin fails with an error that wraps a *schema.Error of kind server-failed, so that a
// server cannot send arguments and credentials elsewhere. A redirect that would turn a POST into a
// GET fails as well.
//
// The headers of the spec, and those of spec.Auth, are set on each request and replace existing ones.
// After a refusal, spec.Auth is asked again, at most once for each of the statuses 401 and 403 of a
// request.
//
// Connecting and the TLS handshake take at most 5 seconds each. The response has no limit, because
// a call may take long, so give each request a context.
//
// For a spec of type "websocket", whose URL is ws:// or wss://, the client makes the request that is
// upgraded, with HTTP/1.1.
//
// The client uses the proxy variables of the environment (HTTPS_PROXY, HTTP_PROXY, NO_PROXY).
// Connections to loopback addresses are direct.
func HTTPClient(spec Spec) *http.Client {
	dialer := &net.Dialer{
		Timeout: dialTimeout,
		// A long call sends nothing while it waits. Keep-alive detects that the other side has
		// disappeared.
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 30 * time.Second, Interval: 10 * time.Second, Count: 3},
	}
	transport := &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            dialer.DialContext,
		TLSHandshakeTimeout:    tlsTimeout,
		MaxIdleConnsPerHost:    idlePerHost,
		IdleConnTimeout:        idleTimeout,
		MaxResponseHeaderBytes: maxHeader,
		ForceAttemptHTTP2:      true, // a custom dialer would disable it otherwise
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTimeout},
	}
	o := &originTripper{id: string(spec.ID), key: cmp.Or(spec.URLKey, "url"), base: transport, auth: spec.Auth, want: "an http or https URL"}
	schemes := []string{"http", "https"}
	if spec.Type == TypeWebSocket {
		transport.ForceAttemptHTTP2, transport.HTTP2 = false, nil
		o.want, schemes = "a ws or wss URL", []string{"ws", "wss"}
	}
	if u, err := url.Parse(spec.URL); err == nil && slices.Contains(schemes, u.Scheme) && u.Hostname() != "" {
		o.origin = originOf(u)
	}
	for name, value := range spec.Headers {
		o.headers = append(o.headers, header{http.CanonicalHeaderKey(name), value})
	}
	return &http.Client{Transport: o, CheckRedirect: o.checkRedirect}
}

type header struct{ name, value string }

// originTripper sends requests to one origin with its headers.
type originTripper struct {
	id      string
	key     string // the setting that holds the URL
	origin  string // "" if the spec has no valid URL
	want    string // the expected form of the URL
	headers []header
	auth    Authorizer // nil if the headers hold the only credential
	base    *http.Transport
}

// RoundTrip sends one request.
func (o *originTripper) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := o.allow(req.URL); err != nil {
		if req.Body != nil {
			req.Body.Close() // as every RoundTripper must
		}
		return nil, err
	}
	if len(o.headers) > 0 || o.auth != nil {
		// A RoundTripper must not change the request.
		own := *req
		own.Header = req.Header.Clone()
		if own.Header == nil {
			own.Header = make(http.Header, len(o.headers))
		}
		for _, h := range o.headers {
			if h.name == "Host" { // net/http has a separate field for it
				own.Host = h.value
				continue
			}
			own.Header[h.name] = []string{h.value}
		}
		req = &own
	}
	if o.auth != nil {
		return authorized(o.auth, req, o.base.RoundTrip)
	}
	return o.base.RoundTrip(req)
}

// CloseIdleConnections implements the method that [http.Client.CloseIdleConnections] calls.
func (o *originTripper) CloseIdleConnections() {
	o.base.CloseIdleConnections()
	if auth, ok := o.auth.(interface{ CloseIdleConnections() }); ok {
		auth.CloseIdleConnections()
	}
}

func (o *originTripper) allow(u *url.URL) error {
	if o.origin == "" {
		return Failed("Server %q has an invalid address; set %q to %s.", o.id, o.key, o.want)
	}
	if originOf(u) != o.origin {
		return Failed("A request for server %q was addressed to %s instead of the configured %s, and was not sent.", o.id, originOf(u), o.origin)
	}
	return nil
}

func (o *originTripper) checkRedirect(req *http.Request, via []*http.Request) error {
	if to := originOf(req.URL); to != o.origin {
		return Failed("Server %q redirects from %s to %s; redirects to another origin are not followed. If this is correct, set %q to the new address.", o.id, o.origin, to, o.key)
	}
	if req.Method != via[0].Method {
		return Failed("Server %q answers a %s with a redirect that would change it to a %s; set %q to the final address.", o.id, via[0].Method, req.Method, o.key)
	}
	if len(via) > maxRedirects {
		return Failed("Server %q redirects more than %d times; set %q to the final address.", o.id, maxRedirects, o.key)
	}
	return nil
}

// originOf returns the normalized scheme, host and port of a URL. For WebSocket it is that of the
// HTTP request.
func originOf(u *url.URL) string {
	scheme := strings.ToLower(u.Scheme)
	switch scheme {
	case "ws":
		scheme = "http"
	case "wss":
		scheme = "https"
	}
	port := u.Port()
	if port == "" {
		switch scheme {
		case "http":
			port = "80"
		case "https":
			port = "443"
		}
	}
	return scheme + "://" + net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}
