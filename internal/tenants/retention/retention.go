// Package retention defines the time for which the payloads of a tenant's calls are kept:
// arguments, results, errors and reasons.
//
// A retention only shortens the time: a store never keeps payloads longer than without one. The
// stores decide what to delete and when.
//
// The package knows neither the configuration nor the stores.
package retention

import (
	"time"

	"github.com/callyard/callyard/pkg/schema"
)

// Periods maps tenants to their retention, by [schema.TenantID.OrDefault]. The zero value means
// that no tenant has one. It is never changed.
type Periods map[schema.TenantID]time.Duration

// Of returns the time for which payloads of the tenant are kept after the end of their call. 0
// means as long as the platform keeps them.
func (p Periods) Of(tenant schema.TenantID) time.Duration { return p[tenant.OrDefault()] }

// Within returns the retention of the tenant if it is shorter than keep, the time for which the
// platform keeps the payloads (0 means forever). Otherwise it returns 0.
func (p Periods) Within(tenant schema.TenantID, keep time.Duration) time.Duration {
	if d := p.Of(tenant); d > 0 && (keep <= 0 || d < keep) {
		return d
	}
	return 0
}

// Over reports whether the retention has ended for payloads of a call that ended, or of a delivery
// that was made, at since.
func (p Periods) Over(tenant schema.TenantID, since, now time.Time) bool {
	d := p.Of(tenant)
	return d > 0 && !since.IsZero() && now.Sub(since) >= d
}
