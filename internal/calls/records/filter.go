package records

import (
	"slices"
	"time"

	"github.com/callyard/callyard/pkg/schema"
)

// Filter chooses calls; what is empty chooses all, but for the tenants.
type Filter struct {
	// tenants are those whose calls are chosen; each reading method has them as a parameter.
	tenants schema.Tenants
	// Principals asked for the call, any of them.
	Principals []string
	Server     schema.ServerID
	Tool       string
	States     []schema.State
	// From and To bound when the call's id was made, which is when it was
	// admitted, in milliseconds; To is not in it.
	From, To time.Time
	Batch    schema.BatchID
}

// may says whether a record can be of a call that fits: later ones of the same
// call fill in what one leaves out, but for the state.
func (f *Filter) may(r *Record) bool {
	// A record without a principal tells of the tenant neither.
	return (r.Principal == "" && r.Tenant == "" || f.tenants.Include(r.Tenant)) &&
		(len(f.Principals) == 0 || r.Principal == "" || slices.Contains(f.Principals, r.Principal)) &&
		may(f.Server, r.Server) && may(f.Tool, r.Tool) && may(f.Batch, r.Batch)
}

// may reports whether a record that may leave the value out can be of a call with that value;
// empty means any.
func may[S ~string](want, got S) bool { return want == "" || got == "" || want == got }

// is reports whether got is the value that is asked for; empty means any.
func is[S ~string](want, got S) bool { return want == "" || want == got }

// fits says whether all that is known of a call fits.
func (f *Filter) fits(r *Record) bool {
	return f.tenants.Include(r.Tenant) && (len(f.Principals) == 0 || slices.Contains(f.Principals, r.Principal)) &&
		is(f.Server, r.Server) && is(f.Tool, r.Tool) && is(f.Batch, r.Batch) &&
		(len(f.States) == 0 || slices.Contains(f.States, r.State))
}

// clocksApart is by how much the clocks of two front doors may differ.
const clocksApart = time.Minute

// span is the keys that fit, from the first to before the second.
func (f *Filter) span() (from, before key) {
	before = lastKey()
	if !f.From.IsZero() {
		from = keyAt(f.From)
	}
	if !f.To.IsZero() {
		before = keyAt(f.To)
	}
	if batch, ok := keyOf(string(f.Batch)); ok {
		// No call of a batch is older than the batch, but for the clocks.
		if least := keyAt(time.UnixMilli(batch.milli()).Add(-clocksApart)); from.less(least) {
			from = least
		}
	}
	return from, before
}
