package webhook

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/callyard/callyard/internal/kit/addresses"
)

// errInner is the cause of a connection that the guard refused.
var errInner = errors.New("the address is not allowed")

// safe returns nil if the rules allow the address, whatever name resolved to it, and errInner
// otherwise.
func (r Rules) safe(ip netip.Addr) error {
	// lookAt checks the port, together with the URL.
	if addresses.Public(ip) || r.AllowPrivate && addresses.Private(ip) && !addresses.Never(ip) {
		return nil
	}
	return errInner
}

// dialTimeout limits the time to connect, within the time of the attempt.
const dialTimeout = 5 * time.Second

// newTransport returns a transport that checks the address of each connection when it connects.
func newTransport(rules Rules, perHost int, roots *x509.CertPool, resolver *net.Resolver) *http.Transport {
	open := &net.Dialer{Timeout: dialTimeout, Resolver: resolver}
	guarded := &net.Dialer{Timeout: dialTimeout, Resolver: resolver, Control: addresses.Control(errInner, func(at netip.AddrPort) error { return rules.safe(at.Addr()) })}
	return &http.Transport{
		// A proxy would make the connection without the guard.
		Proxy: nil,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			host, port, err := net.SplitHostPort(address)
			if err == nil && rules.allows(strings.ToLower(host), portNumber(port)) {
				return open.DialContext(ctx, network, address)
			}
			return guarded.DialContext(ctx, network, address)
		},
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots},
		TLSHandshakeTimeout:    dialTimeout,
		ForceAttemptHTTP2:      true,
		DisableCompression:     true,
		MaxResponseHeaderBytes: 64 << 10,
		MaxIdleConns:           256,
		MaxIdleConnsPerHost:    perHost,
		IdleConnTimeout:        30 * time.Second,
	}
}
