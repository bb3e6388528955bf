package egress

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"code.dny.dev/ssrf"

	"github.com/callyard/callyard/internal/kit/addresses"
)

// errAddress is the cause of a connection that was refused for its address.
var errAddress = errors.New("a sandbox is not allowed to reach its address")

// private says that an address is on loopback or in a private network.
func private(ip netip.Addr) bool {
	return ip.IsLoopback() || ip.IsPrivate() || netip.MustParsePrefix("100.64.0.0/10").Contains(ip)
}

// safe returns nil for an address that may be reached, else an error that wraps
// errAddress. own are the addresses of this machine.
func safe(ip netip.Addr, allowPrivate bool, own []netip.Addr) error {
	ip = ip.Unmap().WithZone("")
	if addresses.Never(ip) {
		return errAddress
	}
	if allowPrivate && (private(ip) || slices.Contains(own, ip)) {
		return nil
	}
	if slices.Contains(own, ip) {
		return fmt.Errorf("%w: it belongs to this machine", errAddress)
	}
	// The port was judged with the name.
	if err := ssrf.New(ssrf.WithAnyPort()).SafeAddr(ip); err != nil {
		return fmt.Errorf("%w: %w", errAddress, err)
	}
	return nil
}
