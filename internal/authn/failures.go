package authn

import (
	"net/netip"
	"time"

	"github.com/callyard/callyard/internal/kit/limiters"
)

const (
	// An address may send failuresBurst wrong keys at once, then one every failuresEvery.
	failuresBurst = 10
	failuresEvery = time.Second
	// addressesKept limits the size of the table.
	addressesKept = 10_000
)

// failures counts wrong credentials per address.
type failures struct{ of *limiters.Table[netip.Addr] }

func newFailures() *failures {
	return &failures{limiters.New[netip.Addr](failuresEvery, failuresBurst, addressesKept)}
}

// count records a wrong credential from the address and returns the time that it must wait, or zero
// if it is within the limit.
func (f *failures) count(remote string) time.Duration { return f.of.Count(network(remote)) }

// network returns the unit that limits count: an IPv4 address, or the /64 of an IPv6 address, which
// a single host commonly has. All invalid addresses share one entry.
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
