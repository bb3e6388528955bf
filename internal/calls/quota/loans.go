package quota

import (
	"maps"
	"slices"

	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/pkg/schema"
)

// Loan is the calls in flight of a tenant with limits at all front doors.
type Loan struct {
	InFlight int
	// Borrowed are those of InFlight beyond its nominal calls; Lent are calls that others have
	// borrowed of its nominal ones.
	Borrowed, Lent int
}

// InFlight returns the calls under way at this front door of each tenant with limits; those
// without calls are left out.
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

// Loans returns the loan of each tenant that limits limit; used are the calls in flight at all
// front doors. What is borrowed is of nobody in particular: it is told as lent by those who leave
// calls unused, in proportion to that. All that is lent is all that is borrowed, as long as the
// counts of the front doors are of one moment.
func Loans(limits map[schema.TenantID]settings.TenantLimits, used map[schema.TenantID]int) map[schema.TenantID]Loan {
	loans := make(map[schema.TenantID]Loan)
	borrowed, unused := 0, 0
	for id, l := range limits {
		if !l.Limited() {
			continue
		}
		id = id.OrDefault()
		loan := Loan{InFlight: used[id], Borrowed: max(0, used[id]-l.Nominal)}
		loans[id] = loan
		borrowed += loan.Borrowed
		unused += max(0, l.Nominal-used[id])
	}
	borrowed = min(borrowed, unused)
	if borrowed == 0 {
		return loans
	}
	before := 0 // what those before leave unused; so the parts have the sum
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
