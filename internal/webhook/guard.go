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

// errInner is the cause of a connection that was refused on our side.
var errInner = errors.New("the address is not allowed")

// safe returns nil for an address that may be reached under the rules, whatever
// name led to it, else errInner.
func (r Rules) safe(ip netip.Addr) error {
	// Ports are judged with the URL; see lookAt.
	if addresses.Public(ip) || r.AllowPrivate && addresses.Private(ip) && !addresses.Never(ip) {
		return nil
	}
	return errInner
}

// dialTimeout bounds the way to a connection, within the time of the attempt.
const dialTimeout = 5 * time.Second

// newTransport returns a transport that looks at each address at the moment when
// a connection to it is made.
func newTransport(rules Rules, perHost int, roots *x509.CertPool, resolver *net.Resolver) *http.Transport {
	open := &net.Dialer{Timeout: dialTimeout, Resolver: resolver}
	guarded := &net.Dialer{Timeout: dialTimeout, Resolver: resolver, Control: addresses.Control(errInner, func(at netip.AddrPort) error { return rules.safe(at.Addr()) })}
	return &http.Transport{
		// A proxy would make the connection in our place, unguarded.
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
