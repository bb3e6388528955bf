// Package addresses classifies network addresses, to restrict the connections that Callyard makes
// on behalf of others: programs that it starts, and addresses that it fetches.
//
// It owns the lists of addresses, and the check of an address when a connection is made. Callers
// decide which addresses to allow in addition to public ones.
package addresses

import (
	"net"
	"net/netip"
	"strings"
	"syscall"

	"code.dny.dev/ssrf"
)

// Never reports whether an address is link-local, or one where clouds serve credentials to every
// process on a machine. No setting allows these addresses.
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

// Private reports whether an address is on loopback or in a private network. [Never] may also be
// true for it.
func Private(ip netip.Addr) bool {
	ip = plain(ip)
	return ip.IsLoopback() || ip.IsPrivate() || netip.MustParsePrefix("100.64.0.0/10").Contains(ip)
}

// Public reports whether an address is on the public internet and [Never] is false for it. It may
// be one of [Own].
func Public(ip netip.Addr) bool {
	ip = plain(ip)
	return !Never(ip) && ssrf.New(ssrf.WithAnyPort()).SafeAddr(ip) == nil
}

// plain normalizes an address: IPv4-mapped addresses become IPv4, and zones are removed.
func plain(ip netip.Addr) netip.Addr { return ip.Unmap().WithZone("") }

// Own returns the addresses of this machine's interfaces.
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

// Control returns a function for [net.Dialer.Control]. It calls judge with the resolved address of
// each connection, and rejects the connection if judge returns an error. It rejects connections
// other than TCP with refused.
func Control(refused error, judge func(at netip.AddrPort) error) func(network, address string, _ syscall.RawConn) error {
	return func(network, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err != nil || !strings.HasPrefix(network, "tcp") {
			return refused
		}
		return judge(at)
	}
}
