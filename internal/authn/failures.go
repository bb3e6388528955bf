package authn

import (
	"net/netip"
	"time"

	"github.com/callyard/callyard/internal/kit/limiters"
)

const (
	// failuresBurst wrong keys may come from one address at once, then one each
	// failuresEvery.
	failuresBurst = 10
	failuresEvery = time.Second
	// addressesKept bounds the table.
	addressesKept = 10_000
)

// failures counts wrong credentials for each address.
type failures struct{ of *limiters.Table[netip.Addr] }

func newFailures() *failures {
	return &failures{limiters.New[netip.Addr](failuresEvery, failuresBurst, addressesKept)}
}

// count notes a wrong credential from the address and returns how long it has to
// wait, zero while it is within the limit.
func (f *failures) count(remote string) time.Duration { return f.of.Count(network(remote)) }

// network is what counts as one address: an IPv4 address, or the /64 of an IPv6
// one, which is what a single host commonly has. Addresses that cannot be read
// share one entry.
func network(remote string) netip.Addr {
	ap, err := netip.ParseAddrPort(remote)
	if err != nil {
		return netip.Addr{}
	}
	address := ap.Addr().Unmap().WithZone("")
	if address.Is4() {
		return address
	}
	prefix, err := address.Prefix(64)
	if err != nil {
		return address
	}
	return prefix.Addr()
}
