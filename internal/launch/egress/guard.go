package egress

import (
	"errors"
	"net/netip"
	"slices"

	"github.com/callyard/callyard/internal/kit/addresses"
)

// errAddress is the cause of a connection refused for its address.
var errAddress = errors.New("a sandbox is not allowed to reach its address")

// safe returns nil if a sandbox may reach the address, and errAddress otherwise. own are the
// addresses of this machine.
func safe(ip netip.Addr, allowPrivate bool, own []netip.Addr) error {
	ip = ip.Unmap().WithZone("")
	inside := addresses.Private(ip) || slices.Contains(own, ip)
	// The port was checked with the name.
	if addresses.Never(ip) || inside && !allowPrivate || !inside && !addresses.Public(ip) {
		return errAddress
	}
	return nil
}
