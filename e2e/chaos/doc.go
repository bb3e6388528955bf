// Package chaos breaks a fleet on purpose and checks its promises: every accepted call
// ends, a call that is not safe to repeat runs at most once, and if it cannot be determined
// whether a call ran, its state is unknown.
//
// A [Campaign] is a fleet of real processes (a NATS server that syncs every write,
// front doors, workers with an MCP server that records each run), a load of
// durable calls by clients that retry like honest clients, and a list of faults
// drawn from a seed. The same seed gives the same faults; which calls each
// of them hits depends on the machine.
//
// The load and the faults depend on each other: a fault strikes when a share of
// the calls has ended, and each fault that has struck lets a share of the calls begin.
// So every fault hits calls in flight, and no time is idle.
//
// Three records are compared at the end: the answers to the clients, the calls that the
// fleet has stored, and the file in which the MCP servers recorded each run. Stored calls
// are read through the public API of restarted front doors, so that no answer comes from
// their memory. Every mismatch is a finding. Two campaigns prove that the harness detects
// faults: one with a front door without its guard (go build -overlay replaces one file of
// internal/batch), and one with a NATS server that does not sync. Both must have findings.
//
// It refuses to run against anything but processes that it started.
package chaos
