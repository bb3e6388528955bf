// Package cache caches results of calls that are safe to repeat, if the policy allows it, and
// lets identical concurrent calls share one run.
//
// Two calls are identical if server, tool, tool definition and argument bytes are equal, and the
// principal too unless the policy shares results. A tool whose definition changed has no cached
// results. Results are cached as the tool returned them. Errors, tool errors and results over the
// size limit are not cached.
//
// A caller that leaves does not affect the other waiters of the same run; the run is canceled when
// all have left. Results are stored in Redis, for all front doors, or in the bounded memory of this
// one. A Redis that does not answer counts as a miss and is logged once.
//
// The package makes no decisions: its caller decides whether a call may run, whether it is safe,
// and how long its result is valid.
package cache
