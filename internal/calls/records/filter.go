package records

import (
	"slices"
	"time"

	"github.com/callyard/callyard/pkg/schema"
)

// Filter selects calls. An empty field matches all calls.
type Filter struct {
	// tenants selects calls by tenant. Each reading method sets it from a parameter.
	tenants schema.Tenants
	// Principals matches calls that any of these principals requested.
	Principals []string
	Server     schema.ServerID
	Tool       string
	States     []schema.State
	// From (inclusive) and To (exclusive) bound the time in the call's id, which is its
	// admission time, in milliseconds.
	From, To time.Time
	Batch    schema.BatchID
}

// may reports whether a record may belong to a matching call. Later records of the same call can
// supply fields that this one omits, except for the state.
func (f *Filter) may(r *Record) bool {
	// A record without a principal does not contain the tenant either.
	return (r.Principal == "" && r.Tenant == "" || f.tenants.Include(r.Tenant)) &&
		(len(f.Principals) == 0 || r.Principal == "" || slices.Contains(f.Principals, r.Principal)) &&
		may(f.Server, r.Server) && may(f.Tool, r.Tool) && may(f.Batch, r.Batch)
}

// may reports whether a record with the value got, which may be omitted, may belong to a call with
// the value want. An empty want matches any.
func may[S ~string](want, got S) bool { return want == "" || got == "" || want == got }

// is reports whether got equals want. An empty want matches any.
func is[S ~string](want, got S) bool { return want == "" || want == got }

// matches reports whether a merged record matches.
func (f *Filter) matches(r *Record) bool {
	return f.tenants.Include(r.Tenant) && (len(f.Principals) == 0 || slices.Contains(f.Principals, r.Principal)) &&
		is(f.Server, r.Server) && is(f.Tool, r.Tool) && is(f.Batch, r.Batch) &&
		(len(f.States) == 0 || slices.Contains(f.States, r.State))
}

// clocksApart is the maximum clock difference between two front doors.
const clocksApart = time.Minute

// span returns the range of matching keys, [from, before).
func (f *Filter) span() (from, before key) {
	before = lastKey()
	if !f.From.IsZero() {
		from = keyAt(f.From)
	}
	if !f.To.IsZero() {
		before = keyAt(f.To)
	}
	if batch, ok := keyOf(string(f.Batch)); ok {
		// A call of a batch is not older than the batch, except for clock differences.
		if least := keyAt(time.UnixMilli(batch.milli()).Add(-clocksApart)); from.less(least) {
			from = least
		}
	}
	return from, before
}
