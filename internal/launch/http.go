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
	pingAfter    = 15 * time.Second // of silence, on HTTP/2
	pingTimeout  = 15 * time.Second
	idleTimeout  = 90 * time.Second
	idlePerHost  = 256 // as many calls at once keep their connections
	maxRedirects = 5
	maxHeader    = 256 << 10
)

// HTTPClient returns the client for the remote server of the spec, with
// connections of its own: end them with CloseIdleConnections. It is safe for
// concurrent use.
//
// It talks to one origin only, the scheme, host and port of spec.URL. A request
// to another, and a redirect to another, fails with a *schema.Error of kind
// server-failed inside the error: a server must not steer arguments and
// credentials elsewhere. So does a redirect that would turn a POST into a GET.
//
// The headers of the spec are set on each request and win over what is there. So are
// those of spec.Auth, which is asked again, at most once for each of the statuses 401 and
// 403 of a request, when the server refuses one.
//
// Connecting and the TLS handshake take 5 seconds each at most. There is no limit
// on the answer, since a call may take long: give each request a context.
//
// For a spec of type "websocket", whose URL is ws:// or wss://, the client makes the request
// that is upgraded. It has HTTP/1.1 only, in which a connection can be.
//
// The proxy variables of the environment (HTTPS_PROXY, HTTP_PROXY, NO_PROXY) are
// followed, as users behind a proxy expect; loopback addresses go direct.
func HTTPClient(spec Spec) *http.Client {
	dialer := &net.Dialer{
		Timeout: dialTimeout,
		// A call that waits long sends nothing; this finds out when the other
		// side is gone without a word.
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 30 * time.Second, Interval: 10 * time.Second, Count: 3},
	}
	transport := &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            dialer.DialContext,
		TLSHandshakeTimeout:    tlsTimeout,
		MaxIdleConnsPerHost:    idlePerHost,
		IdleConnTimeout:        idleTimeout,
		MaxResponseHeaderBytes: maxHeader,
		ForceAttemptHTTP2:      true, // own dialer switches it off otherwise
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

// originTripper sends requests to one origin, with the headers meant for it.
type originTripper struct {
	id      string
	key     string // the setting that has the URL
	origin  string // "" where the spec has no usable URL
	want    string // what the URL should be
	headers []header
	auth    Authorizer // nil where the server has no credential but its headers
	base    *http.Transport
}

// RoundTrip sends one request.
func (o *originTripper) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := o.allow(req.URL); err != nil {
		if req.Body != nil {
			req.Body.Close() // a RoundTripper does so in any case
		}
		return nil, err
	}
	if len(o.headers) > 0 || o.auth != nil {
		// A RoundTripper must leave the request as it is.
		own := *req
		own.Header = req.Header.Clone()
		if own.Header == nil {
			own.Header = make(http.Header, len(o.headers))
		}
		for _, h := range o.headers {
			if h.name == "Host" { // net/http keeps it apart
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

// CloseIdleConnections is what the client's method of that name calls.
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

// originOf returns the scheme, host and port of a URL in one form: that of the request by
// which it is reached.
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
