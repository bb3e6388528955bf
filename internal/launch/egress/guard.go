package egress

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"code.dny.dev/ssrf"
)

// errAddress is the cause of a connection that was refused for its address.
var errAddress = errors.New("a sandbox is not allowed to reach its address")

// never are addresses where clouds tell secrets to whoever asks from inside, and
// those of one link; no setting opens them.
func never(ip netip.Addr) bool {
	if ip.IsLinkLocalUnicast() || ip.IsLinkLocalMulticast() || ip.IsMulticast() || ip.IsUnspecified() {
		return true
	}
	for _, p := range [...]string{"168.63.129.16/32", "100.100.100.200/32", "192.0.0.192/32", "255.255.255.255/32", "fd00:ec2::/32", "fd20:ce::/32"} {
		if netip.MustParsePrefix(p).Contains(ip) {
			return true
		}
	}
	return false
}

// private says that an address is on loopback or in a private network.
func private(ip netip.Addr) bool {
	return ip.IsLoopback() || ip.IsPrivate() || netip.MustParsePrefix("100.64.0.0/10").Contains(ip)
}

// safe returns nil for an address that may be reached, else an error that wraps
// errAddress. own are the addresses of this machine.
func safe(ip netip.Addr, allowPrivate bool, own []netip.Addr) error {
	ip = ip.Unmap().WithZone("")
	if never(ip) {
		return errAddress
	}
	if allowPrivate && (private(ip) || isOwn(ip, own)) {
		return nil
	}
	if isOwn(ip, own) {
		return fmt.Errorf("%w: it belongs to this machine", errAddress)
	}
	// The port was judged with the name.
	if err := ssrf.New(ssrf.WithAnyPort()).SafeAddr(ip); err != nil {
		return fmt.Errorf("%w: %w", errAddress, err)
	}
	return nil
}

func isOwn(ip netip.Addr, own []netip.Addr) bool {
	for _, o := range own {
		if o == ip {
			return true
		}
	}
	return false
}

// ownAddresses are those of this machine's interfaces.
func ownAddresses() ([]netip.Addr, error) {
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
