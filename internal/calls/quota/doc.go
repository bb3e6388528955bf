// Package quota enforces the limits that the operator set for callers, tenants and servers: calls
// per second, calls in flight, waiting durable calls, open batches.
//
// A limit applies to all front doors together. With Redis, they share it: rate tokens are drawn from
// one bucket (GCRA) several at a time, and calls in flight are counted as leased slots, of which
// each front door holds about as many as it needs. A call usually finds both in memory, without a
// request to Redis. The leases of a front door that dies expire after some seconds. Without
// Redis, and while it is unreachable, each front door enforces its share: the limit divided by the
// number of live front doors. A Redis that is down never causes a refusal.
//
// Interactive calls, which a caller waits for, are refused rather than queued, with the time after
// which to retry. Calls of batches wait ([Quota.Wait]) and leave some capacity to interactive calls.
//
// A tenant with limits gets its nominal calls within the duration of one call, even if others
// borrowed them. All such tenants together have at most the sum of these; see [cohort].
//
// If no limit is set, there is no [Quota], and a nil one costs nothing. The package decides on limits
// only; internal/calls/admission decides whether a call is allowed at all.
package quota
