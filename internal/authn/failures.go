package authn

import (
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
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
type failures struct {
	mu        sync.Mutex
	addresses map[netip.Addr]*rate.Limiter
}

func newFailures() *failures { return &failures{addresses: make(map[netip.Addr]*rate.Limiter)} }

// count notes a wrong credential from the address and returns how long it has to
// wait, zero while it is within the limit.
func (f *failures) count(remote string) time.Duration {
	now := time.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	address := network(remote)
	a := f.addresses[address]
	if a == nil {
		if len(f.addresses) >= addressesKept {
			f.dropLocked(now)
		}
		a = rate.NewLimiter(rate.Every(failuresEvery), failuresBurst)
		f.addresses[address] = a
	}
	if a.AllowN(now, 1) {
		return 0
	}
	missing := 1 - a.TokensAt(now)
	return max(time.Duration(missing*float64(failuresEvery)), time.Millisecond)
}

// dropLocked makes room: addresses whose limit has filled up again are as good
// as new. When that frees too little, all are forgotten at once, so that many
// addresses cost a wrong key no more than a few do.
func (f *failures) dropLocked(now time.Time) {
	for address, a := range f.addresses {
		if a.TokensAt(now) >= failuresBurst {
			delete(f.addresses, address)
		}
	}
	if len(f.addresses) > addressesKept/2 {
		clear(f.addresses)
	}
}

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
