package quota

import (
	"maps"
	"slices"

	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/pkg/schema"
)

// TenantLoad describes the calls in flight of a tenant with limits, at all front doors.
type TenantLoad struct {
	InFlight int
	// Borrowed is the number of InFlight calls beyond the nominal limit. Lent is the number of
	// unused nominal calls that other tenants have borrowed.
	Borrowed, Lent int
}

// InFlight returns the calls in flight at this front door for each tenant with limits. Tenants without
// calls are omitted.
func (q *Quota) InFlight() map[schema.TenantID]int {
	if q == nil || q.cohort == nil {
		return nil
	}
	used := make(map[schema.TenantID]int)
	for id, m := range q.cohort.members {
		if n := int(m.used.Load()); n > 0 {
			used[id] = n
		}
	}
	return used
}

// Loans returns the loan of each tenant in limits. used is the number of calls in flight at all front
// doors. A borrowed call has no particular lender, so Lent is split among the tenants with unused
// calls, in proportion to these. The sum of Lent equals the sum of Borrowed if the counts of the
// front doors are from the same moment.
func Loans(limits map[schema.TenantID]settings.TenantLimits, used map[schema.TenantID]int) map[schema.TenantID]TenantLoad {
	loans := make(map[schema.TenantID]TenantLoad)
	borrowed, unused := 0, 0
	for id, l := range limits {
		if !l.Limited() {
			continue
		}
		id = id.OrDefault()
		loan := TenantLoad{InFlight: used[id], Borrowed: max(0, used[id]-l.Nominal)}
		loans[id] = loan
		borrowed += loan.Borrowed
		unused += max(0, l.Nominal-used[id])
	}
	borrowed = min(borrowed, unused)
	if borrowed == 0 {
		return loans
	}
	before := 0 // unused calls of the previous tenants; makes the rounded parts add up
	for _, id := range slices.Sorted(maps.Keys(limits)) {
		loan, ok := loans[id.OrDefault()]
		if !ok {
			continue
		}
		after := before + max(0, limits[id].Nominal-loan.InFlight)
		loan.Lent = borrowed*after/unused - borrowed*before/unused
		loans[id.OrDefault()], before = loan, after
	}
	return loans
}
