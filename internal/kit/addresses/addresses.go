// Package addresses knows the addresses that nothing we start or fetch for somebody else may
// reach, wherever a setting points.
//
// It owns the list. What else is refused, such as private networks, is for the doors that
// lead outside to say.
package addresses

import (
	"net"
	"net/netip"
)

// Never reports whether an address is of one link, or one where clouds hand out credentials
// to everybody on a machine. No setting opens them.
func Never(ip netip.Addr) bool {
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
