package webhook

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"syscall"
	"time"

	"code.dny.dev/ssrf"
)

// errInner is the cause of a connection that was refused on our side.
var errInner = errors.New("the address is not allowed")

var (
	privateV4 = []netip.Prefix{
		netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("127.0.0.0/8"),
		netip.MustParsePrefix("172.16.0.0/12"), netip.MustParsePrefix("192.168.0.0/16"),
	}
	privateV6 = []netip.Prefix{netip.MustParsePrefix("::1/128"), netip.MustParsePrefix("fc00::/7")}

	// never are addresses where clouds tell secrets to whoever asks from inside.
	// The ones that are link-local are refused with all link-local addresses.
	never = []netip.Prefix{
		netip.MustParsePrefix("168.63.129.16/32"),
		netip.MustParsePrefix("100.100.100.200/32"),
		netip.MustParsePrefix("192.0.0.192/32"),
		netip.MustParsePrefix("fd00:ec2::/32"),
		netip.MustParsePrefix("fd20:ce::/32"),
	}
)

// private says that an address is on loopback or in a private network.
func private(ip netip.Addr) bool { return inAny(ip, privateV4) || inAny(ip, privateV6) }

func inAny(ip netip.Addr, prefixes []netip.Prefix) bool {
	for _, p := range prefixes {
		if p.Contains(ip.Unmap()) {
			return true
		}
	}
	return false
}

// safe returns nil for an address that may be reached under the rules, whatever
// name led to it, else an error that wraps errInner.
func (r Rules) safe(ip netip.Addr) error {
	ip = ip.Unmap().WithZone("")
	if inAny(ip, never) {
		return errInner
	}
	if r.AllowPrivate && private(ip) {
		return nil
	}
	// Ports are judged with the URL; see lookAt.
	if err := ssrf.New(ssrf.WithAnyPort()).SafeAddr(ip); err != nil {
		return fmt.Errorf("%w: %w", errInner, err)
	}
	return nil
}

// dialTimeout bounds the way to a connection, within the time of the attempt.
const dialTimeout = 5 * time.Second

// newTransport returns a transport that looks at each address at the moment when
// a connection to it is made.
func newTransport(rules Rules, perHost int, roots *x509.CertPool, resolver *net.Resolver) *http.Transport {
	open := &net.Dialer{Timeout: dialTimeout, Resolver: resolver}
	guarded := &net.Dialer{Timeout: dialTimeout, Resolver: resolver, Control: func(network, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err != nil || !strings.HasPrefix(network, "tcp") {
			return errInner
		}
		return rules.safe(at.Addr())
	}}
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
