// Package quota holds callers, tenants and servers to the limits that the operator set:
// calls a second, calls at once, durable calls that wait, open batches.
//
// It promises that a limit holds over all front doors together. Where there is Redis they
// share it: rates are drawn from one bucket (GCRA) some calls at a time, calls at once are
// counted as leased slots, of which each front door holds about as many as it needs. A call
// mostly finds both here and asks nobody. A front door that dies takes nothing with it for
// longer than its lease, some seconds. Without Redis, and while it cannot be reached, each
// front door takes its share: the limit divided by the number of front doors alive. A Redis
// that is down never refuses a call.
//
// It promises too that calls which somebody waits for are refused rather than kept, with
// the time after which to retry, while calls of batches wait for their turn ([Quota.Wait])
// and leave some room to the former.
//
// It promises that a tenant with limits has its nominal calls within the length of one call,
// whoever borrowed them, and that all such tenants together have at most the sum of these;
// see [cohort].
//
// Where no limit is set there is no [Quota], and a nil one costs nothing. It
// refuses to judge: what is allowed at all is for internal/calls/admission.
package quota
