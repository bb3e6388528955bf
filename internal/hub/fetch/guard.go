package fetch

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/callyard/callyard/internal/kit/addresses"
)

// errAddress is the cause of a connection that was refused because of its address.
var errAddress = errors.New("its address is not public; an operator can open it with the setting allow")

// allowed is an entry of the allow list: a host or a range of addresses.
type allowed struct {
	host   string // or
	within netip.Prefix
	port   uint16 // 0 means the ports of the web
}

// guard checks URLs and addresses.
type guard struct {
	allow    []allowed
	resolver *net.Resolver // if nil, the system's resolver is used
	// own returns the addresses of this machine.
	own func() ([]netip.Addr, error)
	// approved, if not nil, is called with each accepted address before the connection is made.
	// Tests use it to see the addresses that would be reached.
	approved func(netip.AddrPort) error
}

func newGuard(allow []string) (*guard, error) {
	g := &guard{own: addresses.Own}
	for _, text := range allow {
		a, err := parseAllowed(text)
		if err != nil {
			return nil, err
		}
		g.allow = append(g.allow, a)
	}
	return g, nil
}

func parseAllowed(text string) (allowed, error) {
	if p, err := netip.ParsePrefix(text); err == nil {
		return allowed{within: p.Masked()}, nil
	}
	host, port := text, uint16(0)
	if h, p, err := net.SplitHostPort(text); err == nil {
		n, err := strconv.ParseUint(p, 10, 16)
		if err != nil || n == 0 {
			return allowed{}, fmt.Errorf("allow: %q has no valid port; write a number from 1 to 65535", text)
		}
		host, port = h, uint16(n)
	}
	if ip, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		ip = ip.Unmap().WithZone("")
		return allowed{within: netip.PrefixFrom(ip, ip.BitLen()), port: port}, nil
	}
	host = canonical(host)
	if host == "" || strings.ContainsAny(host, "/:*@ []%") {
		return allowed{}, fmt.Errorf("allow: %q is not a host, an address or a CIDR range; write them as wiki.internal:8080, 10.1.2.3 or 10.1.2.0/24", text)
	}
	return allowed{host: host, port: port}, nil
}

// canonical returns the form in which hosts are compared.
func canonical(host string) string { return strings.ToLower(strings.TrimSuffix(host, ".")) }

// covers reports whether an entry applies to a port.
func (a allowed) covers(port uint16) bool {
	return a.port == port || a.port == 0 && (port == 80 || port == 443)
}

// hostAllowed reports whether a host is allowed by its name.
func (g *guard) hostAllowed(host string, port uint16) bool {
	for _, a := range g.allow {
		if a.host != "" && a.host == canonical(host) && a.covers(port) {
			return true
		}
	}
	return false
}

// check checks a URL before its host is resolved.
func (g *guard) check(u *url.URL) error {
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("the scheme of the URL is %.20q; only http and https are fetched", u.Scheme)
	case u.Hostname() == "":
		return errors.New("the URL has no host; write it as https://example.com/page")
	case u.User != nil:
		return errors.New("the URL has a user name or password; remove them")
	}
	port, err := portOf(u)
	if err != nil {
		return err
	}
	if port == 80 || port == 443 || g.hostAllowed(u.Hostname(), port) {
		return nil
	}
	for _, a := range g.allow { // the address is checked once it is known
		if a.host == "" && a.port == port {
			return nil
		}
	}
	return fmt.Errorf("the port %d is not fetched; only 80 and 443 are, and those that an operator opened with the setting allow", port)
}

func portOf(u *url.URL) (uint16, error) {
	text := u.Port()
	switch {
	case text == "" && u.Scheme == "http":
		return 80, nil
	case text == "":
		return 443, nil
	}
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return 0, fmt.Errorf("the port %.10q is not a number from 1 to 65535", text)
	}
	return uint16(n), nil
}

// judge returns nil for an address to which a connection is permitted. named reports whether its
// host is allowed by name.
func (g *guard) judge(at netip.AddrPort, named bool) error {
	ip := at.Addr().Unmap().WithZone("")
	if addresses.Never(ip) {
		return errors.New("its address is one of those that are never fetched")
	}
	if named {
		return nil
	}
	for _, a := range g.allow {
		if a.host == "" && a.within.Contains(ip) && a.covers(at.Port()) {
			return nil
		}
	}
	if at.Port() != 80 && at.Port() != 443 || !addresses.Public(ip) {
		return errAddress
	}
	own, err := g.own()
	if err != nil {
		return fmt.Errorf("the addresses of this machine are not known: %w", err)
	}
	if slices.Contains(own, ip) { // a public address of this machine also reaches internal listeners
		return errAddress
	}
	return nil
}

// dial connects to a host. It checks each of its addresses before trying it.
func (g *guard) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, portText, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	port, err := strconv.ParseUint(portText, 10, 16)
	if err != nil {
		return nil, err
	}
	named := g.hostAllowed(host, uint16(port))
	d := net.Dialer{Timeout: 10 * time.Second, Resolver: g.resolver, Control: addresses.Control(errAddress, func(at netip.AddrPort) error {
		if err := g.judge(at, named); err != nil {
			return err
		}
		if g.approved != nil {
			return g.approved(at)
		}
		return nil
	})}
	return d.DialContext(ctx, network, address)
}
