// Package retention says how long the payloads of a tenant's calls are kept: arguments,
// results, errors and the reasons that people gave.
//
// It promises that a retention only shortens: whoever stores payloads keeps them no longer than
// without one. What the stores delete, and when, is theirs.
//
// It refuses to know the configuration and the stores.
package retention

import (
	"time"

	"github.com/callyard/callyard/pkg/schema"
)

// Periods are the retentions of the tenants that have one, by [schema.TenantID.OrDefault]. The
// zero value is a fabric in which no tenant has one. They are never changed.
type Periods map[schema.TenantID]time.Duration

// Of returns how long payloads of the tenant are kept after the end of their call; 0: as long as
// the platform keeps them.
func (p Periods) Of(tenant schema.TenantID) time.Duration { return p[tenant.OrDefault()] }

// Within returns the retention of the tenant where it is shorter than keep, which is how long
// the platform keeps the payloads (0: for ever); else 0.
func (p Periods) Within(tenant schema.TenantID, keep time.Duration) time.Duration {
	if d := p.Of(tenant); d > 0 && (keep <= 0 || d < keep) {
		return d
	}
	return 0
}

// Over reports whether payloads of the tenant from a call that ended, or a delivery that was
// made, at a time are not to be kept any more.
func (p Periods) Over(tenant schema.TenantID, since, now time.Time) bool {
	d := p.Of(tenant)
	return d > 0 && !since.IsZero() && now.Sub(since) >= d
}
