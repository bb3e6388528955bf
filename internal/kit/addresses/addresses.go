// Package addresses knows which addresses of a network something that we start, fetch or ask
// for somebody else may reach.
//
// It owns the lists, and the look at an address when a connection to it is made. What is
// allowed beyond public addresses is for the doors that lead outside to say.
package addresses

import (
	"net"
	"net/netip"
	"strings"
	"syscall"

	"code.dny.dev/ssrf"
)

// Never reports whether an address is of one link, or one where clouds hand out credentials
// to everybody on a machine. No setting opens them.
func Never(ip netip.Addr) bool {
	ip = plain(ip)
	if ip.IsLinkLocalUnicast() || ip.IsMulticast() || ip.IsUnspecified() {
		return true
	}
	for _, p := range [...]string{"168.63.129.16/32", "100.100.100.200/32", "192.0.0.192/32", "255.255.255.255/32", "fd00:ec2::/32", "fd20:ce::/32"} {
		if netip.MustParsePrefix(p).Contains(ip) {
			return true
		}
	}
	return false
}

// Private reports whether an address is on loopback or in a private network. It can be one of
// [Never] as well.
func Private(ip netip.Addr) bool {
	ip = plain(ip)
	return ip.IsLoopback() || ip.IsPrivate() || netip.MustParsePrefix("100.64.0.0/10").Contains(ip)
}

// Public reports whether an address is one of the public internet and not one of [Never]. It
// can be one of [Own].
func Public(ip netip.Addr) bool {
	ip = plain(ip)
	return !Never(ip) && ssrf.New(ssrf.WithAnyPort()).SafeAddr(ip) == nil
}

// plain is an address as it is judged: one of IPv4 as such, and without a zone.
func plain(ip netip.Addr) netip.Addr { return ip.Unmap().WithZone("") }

// Own are the addresses of this machine's interfaces.
func Own() ([]netip.Addr, error) {
	list, err := net.InterfaceAddrs()
	if err != nil {
		return nil, err
	}
	out := make([]netip.Addr, 0, len(list))
	for _, a := range list {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			out = append(out, p.Addr().Unmap())
		}
	}
	return out, nil
}

// Control is that of a [net.Dialer] which asks judge about each address, whatever name led to
// it, when a connection is made. Connections that are not TCP end with refused.
func Control(refused error, judge func(at netip.AddrPort) error) func(network, address string, _ syscall.RawConn) error {
	return func(network, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err != nil || !strings.HasPrefix(network, "tcp") {
			return refused
		}
		return judge(at)
	}
}
